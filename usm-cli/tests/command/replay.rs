//! `usm replay`.

use serde_json::Value;

use crate::support::{file, folder, keys, text, usm};

const KEYS: [&str; 8] = [
    "pairs",
    "peak_live",
    "peak_reserved",
    "ratio",
    "ns_per_pair",
    "fragmentation",
    "cross_queue_reuses",
    "waits",
];

/// Two streams: the second gets the bytes of the first.
const TRACE: &str = "m,0,0,0\na,1,3000000,0\nf,1,3000000,0\na,2,3000000,1\nu,2,0,0\nf,2,3000000,1\n\n";

fn answer(arguments: &[&str]) -> Value {
    let ran = usm(&[&["replay", "--json"], arguments].concat());
    assert_eq!((ran.code, &ran.stderr[..]), (0, ""));
    serde_json::from_str(&ran.stdout).expect("one document")
}

#[test]
fn a_trace_takes_the_same_memory_every_time() {
    let folder = folder("replay");
    let trace = file(&folder, "trace.csv", TRACE);
    let mut first = answer(&[&trace]);
    assert_eq!(keys(&first), KEYS);
    assert_eq!(
        (&first["pairs"], &first["peak_live"], &first["peak_reserved"]),
        (&2.into(), &3_000_000.into(), &(4 << 20).into())
    );
    assert_eq!((&first["cross_queue_reuses"], &first["waits"]), (&1.into(), &0.into()));
    let mut again = answer(&[&trace]);
    (first["ns_per_pair"], again["ns_per_pair"]) = (Value::Null, Value::Null);
    assert_eq!(first, again);
    let late = answer(&[&trace, "--delay", "5"]);
    assert_eq!((&late["cross_queue_reuses"], &late["waits"]), (&1.into(), &1.into()));
    let shown = usm(&["replay", &trace]);
    assert!(shown.stdout.starts_with("2 pairs, ") && shown.stdout.contains("peak reserved  4.00 MiB"));
    assert_eq!(answer(&[&file(&folder, "empty.csv", "")])["ratio"], 1.0);
}

#[test]
fn pictures_and_viewer_files_are_written() {
    let folder = folder("replay_files");
    let trace = file(&folder, "trace.csv", TRACE);
    let [picture, pickle] = ["p.svg", "s.pickle"].map(|name| text(&folder.join(name)));
    answer(&[&trace, "--svg", &picture, "--snapshot", &pickle]);
    let picture = std::fs::read_to_string(picture).expect("a picture");
    assert!(picture.starts_with("<svg") && picture.contains("trace.csv"));
    assert!(picture.contains("0 blocks, 0.000 MiB in use, peak 2.861 MiB, 4 events"), "{picture}");
    let pickle = std::fs::read(pickle).expect("a snapshot");
    let has = |text: &str| pickle.windows(text.len()).any(|part| part == text.as_bytes());
    assert!(has("active_allocated") && has("inactive") && !has("segment_alloc"));
    usm(&["replay", &trace, "--svg", "-"]).refused(&["--svg"]);
    // What a trace leaves allocated is in use at its end.
    let open = file(&folder, "open.csv", format!("{TRACE}a,3,9,0\na,4,524288,1\na,5,1048576,0\nf,3,9,0\n"));
    let picture = text(&folder.join("open.svg"));
    answer(&[&open, "--svg", &picture]);
    let picture = std::fs::read_to_string(picture).expect("a picture");
    assert!(picture.contains("2 blocks, 1.500 MiB in use, "), "{picture}");
}

#[test]
fn a_wrong_trace_is_refused_with_its_place() {
    let folder = folder("replay_wrong");
    for (number, (trace, words)) in [
        ("a,1,64,0\nf,1,64,0\nf,1,64,0", ["line 3", "id"]),
        ("f,7,64,0", ["line 1", "id"]),
        ("a,1,64,0\na,1,64,0", ["line 2", "id"]),
        ("a,1,18446744073709551616,0", ["line 1", "size"]),
        ("a,1,18446744073709551615,0", ["line 1", "size"]),
        ("a,1,0,0", ["line 1", "size"]),
        ("a,1,64", ["line 1", "stream"]),
        ("a,1,64,4294967296", ["line 1", "stream"]),
        ("a,1,64,0,1", ["line 1", "stream"]),
        ("a,-1,64,0", ["line 1", "id"]),
        ("x,1,64,0", ["line 1", "op"]),
        ("a,1,64,0\n\u{0}\u{1}", ["line 2", "op"]),
    ]
    .into_iter()
    .enumerate()
    {
        let name = format!("{number}.csv");
        let path = file(&folder, &name, trace);
        let words = [words[0].replace("line ", &format!("{name}:")), words[1].to_owned()];
        usm(&["replay", &path]).refused(&[&words[0], &words[1]]);
    }
    let binary = text(&folder.join("binary"));
    std::fs::write(&binary, b"a,1,64,0\n\xff\xfe").expect("a file");
    usm(&["replay", &binary]).refused(&["binary:2", "not text"]);
    usm(&["replay", &text(&folder.join("none"))]).refused(&["none", "cannot be read"]);
}
