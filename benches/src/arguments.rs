//! The arguments of the program.

use std::path::PathBuf;

/// The arguments, sorted by their meaning.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Arguments {
    /// Benchmarks to run; all if there is none.
    pub(crate) names: Vec<String>,
    pub(crate) json: bool,
    /// Whether this program was compiled for this machine's processor.
    pub(crate) native: bool,
    /// Folders of `--instances`, for the planner and ggml.
    pub(crate) instances: Vec<PathBuf>,
    /// The file of `--table`, for the planner.
    pub(crate) table: Option<PathBuf>,
}

impl Arguments {
    /// Those of this process.
    pub(crate) fn get() -> Result<Self, String> {
        Self::of(std::env::args().skip(1), &|name| crate::BENCHES.iter().any(|(bench, _)| *bench == name))
    }

    /// After `--instances` come folders, until an option or the name of a benchmark.
    fn of(arguments: impl Iterator<Item = String>, is_name: &dyn Fn(&str) -> bool) -> Result<Self, String> {
        let mut all = Self::default();
        let mut folders = false;
        let mut arguments = arguments.peekable();
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--json" => (all.json, folders) = (true, false),
                "--native" => (all.native, folders) = (true, false),
                "--instances" => folders = true,
                "--table" => {
                    let file = arguments.next_if(|file| !file.starts_with("--"));
                    all.table = Some(file.ok_or("--table needs a file")?.into());
                    folders = false;
                }
                option if option.starts_with("--") => return Err(format!("no option {option}")),
                name if is_name(name) => (folders, _) = (false, all.names.push(argument)),
                _ if folders => all.instances.push(argument.into()),
                _ => all.names.push(argument),
            }
        }
        Ok(all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Result<Arguments, String> {
        Arguments::of(line.split_whitespace().map(str::to_owned), &|name| ["planner", "nrt"].contains(&name))
    }

    #[test]
    fn folders_end_at_an_option_or_a_name() {
        let all = of("planner --instances a b --table t.md --json --native").unwrap();
        assert_eq!((all.names, all.json, all.native), (vec!["planner".to_owned()], true, true));
        assert_eq!((all.instances, all.table), (vec!["a".into(), "b".into()], Some("t.md".into())));
        let all = of("--instances a planner nrt").unwrap();
        assert_eq!((all.names.len(), all.instances.len()), (2, 1));
    }

    #[test]
    fn wrong_arguments_are_told() {
        assert_eq!(of("planner --table"), Err("--table needs a file".to_owned()));
        assert_eq!(of("--table --json"), Err("--table needs a file".to_owned()));
        assert_eq!(of("--tabel t.md"), Err("no option --tabel".to_owned()));
        // The caller looks for it among the benchmarks.
        assert_eq!(of("plannner").unwrap().names, ["plannner"]);
    }
}
