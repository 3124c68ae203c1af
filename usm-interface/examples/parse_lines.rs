//! A parser loop: one dictionary a line, in Python's or JSON's spelling. No line allocates, and
//! none can panic.
//!
//! `cargo run -p usm-interface --example parse_lines` reads the lines below; with `-` as its
//! argument it reads standard input.

use std::io::Read as _;

use usm_interface::{Field, Policy, dict};

const LINES: &str = "\
{'data': (4096, False), 'shape': (2, 3), 'strides': None, 'typestr': '<f4', 'version': 3}
{\"data\": [4096, true], \"shape\": [5], \"strides\": [-8], \"typestr\": \"<i8\", \"version\": 3}
{'data': (4096, False), 'shape': (2, -3), 'typestr': '<f4', 'version': 3}
";

fn main() -> std::io::Result<()> {
    let mut text = LINES.to_owned();
    if std::env::args().nth(1).as_deref() == Some("-") {
        text.clear();
        std::io::stdin().read_to_string(&mut text)?;
    }
    // One table for all lines: it receives the members of structured types.
    let mut fields = [Field::EMPTY; 32];
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        match dict::parse::<8>(line, None, &Policy::default(), &mut fields) {
            Ok(array) => {
                let layout = array.layout();
                println!(
                    "{number}: shape {:?}, strides {:?} bytes, {:?}",
                    layout.shape(),
                    layout.strides(),
                    layout.extent()
                );
            }
            Err(error) => println!("{number}: refused: {error}"),
        }
    }
    Ok(())
}
