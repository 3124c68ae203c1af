//! Whole numbers in texts.

/// A whole number of at most 64 bits.
pub fn number(text: &str) -> Result<u64, String> {
    // The standard library also takes a plus sign.
    match text.parse() {
        Ok(value) if !text.starts_with('+') => Ok(value),
        Err(_) if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) => {
            Err(format!("{text} is above {}", u64::MAX))
        }
        _ => Err(format!("{text:?} is not a whole number")),
    }
}
