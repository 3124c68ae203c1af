//! Words that say what was done to a value, or where it is, and not what it is.

/// Nouns in `ed` and `ing`: no forms of a verb, then what a verb makes.
const NOUNS: &str = "
    bed bleed breed deed embed exceed feed greed hundred led need proceed red reed seed shed speed succeed
    weed king ping ring string docstring thing wing sibling ceiling spring anything everything nothing
    something
    beginning binding building casting embedding encoding ending heading listing mapping meaning opening
    ordering padding reading rounding setting spacing spelling timing warning";

/// Terms of the field: kinds of memory and of integers, states of a block, what std and compilers
/// call their values.
const TERMS: &str = "
    shared signed unsigned unsupported cached deferred pending requested reserved sealed staging elapsed
    expected unnamed";

/// Participles without such an end.
const PARTICIPLES: &str = "
    begun bent beaten born borne bought broken brought built caught chosen come dealt done drawn driven
    fallen felt flown forgotten found frozen given gone got gotten grown held hidden hung kept known laid
    lent lost made meant met mistaken paid proven risen said seen sent shown slept sold spent spoken stolen
    stood stuck struck sworn taken taught thought thrown told unknown won worn written";

/// Adverbs, of place and of time. `then` is none of them: it is a branch.
const ADVERBS: &str = "
    again ago ahead alike alone already always anew apart around aside away backwards early elsewhere enough
    ever far forwards here instead late later meanwhile near never often once only otherwise over so soon
    still there thus together twice";

/// Whether a name is a participle or an adverb, as in `found` and `here`. A name of several words
/// has a noun or is a question, as `is_done`.
pub(super) fn says_no_thing(name: &str) -> bool {
    let name = name.trim_start_matches('_');
    let has_words = name.contains('_') || name.chars().skip(1).any(|letter| letter.is_ascii_uppercase());
    let name = name.to_ascii_lowercase();
    let is_in = |list: &str| list.split_ascii_whitespace().any(|word| word == name);
    let has_end = name.len() > 4 && (name.ends_with("ed") || name.ends_with("ing"));
    if has_words || has_end && (is_in(NOUNS) || is_in(TERMS)) {
        return false;
    }
    has_end || is_in(PARTICIPLES) || is_in(ADVERBS)
}

#[cfg(test)]
mod tests {
    use super::says_no_thing;

    #[test]
    fn participles_and_adverbs_are_told_from_nouns() {
        for name in ["found", "Made", "here", "asked", "remaining", "_kept"] {
            assert!(says_no_thing(name), "{name}");
        }
        for name in ["string", "Shared", "KeptPlan", "speed", "entry", "is_made", "kept_bytes", "open"] {
            assert!(!says_no_thing(name), "{name}");
        }
    }
}
