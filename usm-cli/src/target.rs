//! The invariants of the command's own readers for every input: for the test below, and for
//! `fuzz/fuzz_targets/command_inputs.rs`.

use usm_core::Selector;
use usm_plan::error::Exit;
use usm_plan::escape::is_unsafe;

use crate::cfg_json;

/// The first byte chooses the reader, the others are the input. Nothing panics; a refusal is bad
/// input, reported in one line that a terminal displays unchanged.
pub(crate) fn check(data: &[u8]) {
    let Some((reader, input)) = data.split_first() else { return };
    if reader & 1 == 0 {
        if let Err(error) = cfg_json::parse(input) {
            let message = error.to_string();
            assert!(!message.is_empty() && !message.chars().any(is_unsafe), "{message:?}");
            assert!(matches!(error.exit(), Exit::Bad | Exit::Unable), "{message}");
        }
    } else {
        let text = String::from_utf8_lossy(input);
        if let Ok(selector) = text.parse::<Selector>() {
            assert_eq!(selector.to_string().parse(), Ok(selector), "{text:?}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: &str = r#"{"case":"fan","subgraph_limit":10,"functions":{"main":[{"name":"head","succ":["left"],"raising":false,
        "ops":[["inc","a"],["dec",null]]},{"name":"left","succ":[],"raising":true,"ops":[["dec","a"]]}]}}"#;
    const SELECTOR: &str = "sycl:level_zero:gpu:1";

    #[test]
    fn every_flip_and_every_end_of_a_record_and_a_selector_is_read_or_refused() {
        assert!(cfg_json::parse(RECORD.as_bytes()).is_ok());
        assert!(SELECTOR.parse::<Selector>().is_ok());
        for (reader, seed) in [RECORD, SELECTOR].into_iter().enumerate() {
            let mut data = vec![reader as u8];
            data.extend(seed.bytes());
            for at in 1..data.len() {
                check(&data[..at]);
                for bit in 0..8 {
                    data[at] ^= 1 << bit;
                    check(&data);
                    data[at] ^= 1 << bit;
                }
            }
        }
    }
}
