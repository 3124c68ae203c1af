//! The corpora of the fuzz targets, as ordinary tests.

mod targets;

use std::path::Path;

#[test]
fn every_input_of_every_corpus_holds() {
    let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus");
    if !corpora.is_dir() {
        return skip::missing("corpora", "they are not part of the package");
    }
    for (name, check) in targets::TARGETS {
        let folder = corpora.join(name);
        let mut inputs = 0;
        for entry in std::fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())) {
            check(&std::fs::read(entry.unwrap().path()).unwrap());
            inputs += 1;
        }
        assert!(inputs >= 10, "{name}: {inputs} inputs");
    }
}
