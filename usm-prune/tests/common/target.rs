//! LLVM IR text from any bytes. The fuzz target calls this, and its corpus runs through it as an
//! ordinary test.
//!
//! Checks that nothing panics; lines that count no references stay unchanged in their order; those
//! that do are lines of the input; the statistics equal the number of removed lines; the output is
//! readable, and the reference finds nothing more in it.

use usm_prune::{Method, Options, prune_llvm};

/// Whether the default method accepts the text.
pub(crate) fn llvm(data: &[u8]) -> bool {
    let text = String::from_utf8_lossy(data);
    let mut accepted = false;
    for method in [Method::Legacy, Method::Reference, Method::Extended] {
        let options = Options { method, ..Options::default() };
        let Ok(pruned) = prune_llvm(&text, &options) else { continue };
        accepted = true;
        let counts = |line: &&str| line.contains("NRT_incref") || line.contains("NRT_decref");
        let others =
            |text: &str| text.lines().filter(|line| !counts(line)).map(String::from).collect::<Vec<_>>();
        assert_eq!(others(&pruned.text), others(&text), "{method:?} changed another line");
        let mut gone: Vec<&str> = text.lines().filter(counts).collect();
        for line in pruned.text.lines().filter(counts) {
            let place = gone.iter().position(|gone| *gone == line).expect("a line of the input, once");
            gone.swap_remove(place);
        }
        let counted: usize = pruned.functions.iter().map(|(_, stats)| stats.total()).sum();
        assert_eq!(gone.len(), counted, "{method:?}: lines removed and operations counted");
        let again = prune_llvm(&pruned.text, &options).expect("what was written is read");
        if method != Method::Extended {
            assert_eq!(again.text, pruned.text, "{method:?} finds more the second time");
        }
    }
    accepted
}
