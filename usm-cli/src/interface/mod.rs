//! `usm interface`: reads dictionaries and answers each with one line.

mod convert;

use std::io::{self, BufRead, BufReader, BufWriter, Write};

use clap::{Args, ValueEnum};
use serde::Serialize;
use usm_interface::value::Str;
use usm_interface::{
    Allocation, Error as Refusal, ErrorKind, Field, Interface, Key, LimitError, MissingData, Mode, Policy,
    Protocol, SyclObject, dict, members,
};

use crate::error::{Error, Exit, Result};
use crate::input::number;
use convert::{ConvertedForm, To, convert};
use usm_plan::units;

/// NumPy's maximum number of dimensions.
const DIMS: usize = 64;

/// Size of the member table: first attempt, and maximum.
const FIELDS: [usize; 2] = [256, 65_536];

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Which protocol the dictionaries follow.
    #[arg(long, value_enum, default_value = "auto")]
    protocol: ProtocolArgument,
    /// The accepted spellings of types: the standard's, or also those that NumPy accepts.
    #[arg(long, value_enum, default_value = "strict")]
    compat: Compat,
    /// Refuse arrays that do not lie inside this block of memory.
    #[arg(long, value_name = "BASE:LEN", value_parser = allocation)]
    allocation: Option<(u64, u64)>,
    /// Also write the array in another protocol, under the key "converted".
    #[arg(long, value_enum)]
    to: Option<To>,
    /// The `syclobj` of dictionaries that are converted to SYCL and have none.
    #[arg(long, value_name = "FILTER")]
    syclobj: Option<String>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum ProtocolArgument {
    Auto,
    Array,
    Cuda,
    Sycl,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Compat {
    Strict,
    Numpy,
}

impl ProtocolArgument {
    fn protocol(self) -> Option<Protocol> {
        match self {
            Self::Auto => None,
            Self::Array => Some(Protocol::Array),
            Self::Cuda => Some(Protocol::Cuda),
            Self::Sycl => Some(Protocol::Sycl),
        }
    }
}

fn allocation(text: &str) -> Result<(u64, u64), String> {
    let (base, len) = text.split_once(':').ok_or("not BASE:LEN")?;
    let base = match base.strip_prefix("0x") {
        // The standard library also takes a plus sign.
        Some(hexadecimal) if hexadecimal.starts_with('+') => {
            return Err(format!("{base:?} is not a whole number"));
        }
        Some(hexadecimal) => u64::from_str_radix(hexadecimal, 16).map_err(|error| error.to_string())?,
        None => number(base)?,
    };
    let len = units::bytes(len)?;
    // The last byte must have an address.
    if base.checked_add(len.saturating_sub(1)).is_none() {
        return Err(format!("{len} bytes at {base} end above {}", u64::MAX));
    }
    Ok((base, len))
}

#[derive(Serialize)]
#[serde(untagged)]
enum Answer {
    Accepted(AcceptedReport),
    Refused(RefusalReport),
}

#[derive(Serialize)]
struct AcceptedReport {
    ok: bool,
    protocol: &'static str,
    dtype: String,
    itemsize: u32,
    shape: Vec<i64>,
    strides_bytes: Vec<i64>,
    offset_bytes: i64,
    readonly: bool,
    extent: [i64; 2],
    fields: Vec<Member>,
    #[serde(skip_serializing_if = "Option::is_none")]
    converted: Option<ConvertedForm>,
}

#[derive(Serialize)]
struct Member {
    name: String,
    title: Option<String>,
    offset: u32,
    itemsize: u32,
    typestr: String,
    shape: Vec<u32>,
    fields: Vec<Self>,
}

#[derive(Serialize)]
struct RefusalReport {
    ok: bool,
    error: Reason,
}

#[derive(Serialize)]
struct Reason {
    kind: &'static str,
    field: Option<String>,
    message: String,
}

impl Answer {
    fn refused(kind: &'static str, field: Option<String>, message: String) -> Self {
        Self::Refused(RefusalReport { ok: false, error: Reason { kind, field, message } })
    }
}

impl From<Refusal> for Answer {
    fn from(refusal: Refusal) -> Self {
        let path = refusal.path();
        let field = (path.root() != Key::Document).then(|| path.to_string());
        Self::refused(refusal.kind().name(), field, refusal.to_string())
    }
}

/// Runs the command.
pub(crate) fn run(arguments: &Arguments) -> Result<Exit> {
    if arguments.syclobj.is_some() && arguments.to != Some(To::Sycl) {
        return Err(Error::bad("only dictionaries of SYCL have one; give --to sycl").in_field("--syclobj"));
    }
    let mut input = BufReader::with_capacity(1 << 16, io::stdin().lock());
    let mut out = BufWriter::new(io::stdout().lock());
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = input
            .read_until(b'\n', &mut line)
            .map_err(|error| Error::bad(format!("standard input: {error}")))?;
        if read == 0 {
            break;
        }
        let result = answer_line(&line, arguments).map_or(Ok(()), |answer| {
            crate::output::json_to(&mut out, &answer)?;
            // Flushes before it waits for input, for a caller that reads each answer before the
            // next question.
            if input.buffer().is_empty() { out.flush() } else { Ok(()) }
        });
        if !crate::output::has_reader(result)? {
            return Ok(Exit::Done);
        }
    }
    crate::output::has_reader(out.flush())?;
    Ok(Exit::Done)
}

/// The answer to one line; `None` for a blank one.
fn answer_line(line: &[u8], arguments: &Arguments) -> Option<Answer> {
    let text = match core::str::from_utf8(line) {
        Ok(text) => text.trim(),
        Err(error) => {
            let message = format!("not UTF-8 text from byte {}", error.valid_up_to());
            return Some(Answer::refused("not_utf8", None, message));
        }
    };
    if text.is_empty() {
        return None;
    }
    let policy = Policy {
        mode: match arguments.compat {
            Compat::Strict => Mode::Strict,
            Compat::Numpy => Mode::Numpy,
        },
        missing_data: MissingData::Allow,
        ..Policy::default()
    };
    let [first, most] = FIELDS;
    let answer = match check(text, arguments, &policy, first) {
        Err(refusal) if matches!(refusal.kind(), ErrorKind::Limit(LimitError::TooManyFields { .. })) => {
            check(text, arguments, &policy, most)
        }
        other => other,
    };
    Some(answer.unwrap_or_else(Answer::from))
}

fn check(text: &str, arguments: &Arguments, policy: &Policy, fields: usize) -> Result<Answer, Refusal> {
    let mut table = vec![Field::EMPTY; fields];
    let array: Interface<'_, '_, DIMS> =
        dict::parse(text, arguments.protocol.protocol(), policy, &mut table)?;
    if let Some((base, len)) = arguments.allocation {
        array.check_inside(Allocation { base, len })?;
    }
    let syclobj = arguments.syclobj.as_deref().map(|filter| SyclObject::Filter(Str::new(filter)));
    let form = arguments.to.map(|to| convert(&array, to, syclobj)).transpose()?;
    let layout = array.layout();
    Ok(Answer::Accepted(AcceptedReport {
        ok: true,
        protocol: array.protocol().name(),
        dtype: layout.dtype().to_string(),
        itemsize: layout.itemsize(),
        shape: layout.shape().to_vec(),
        strides_bytes: layout.strides().to_vec(),
        offset_bytes: layout.offset(),
        readonly: array.readonly(),
        extent: [layout.extent().low, layout.extent().high],
        fields: named_members(array.fields()),
        converted: form,
    }))
}

/// The members of one level without padding. Recursive, but the parser limits the depth.
fn named_members(table: &[Field<'_>]) -> Vec<Member> {
    members(table)
        .filter(|(field, _)| !field.is_padding())
        .map(|(field, own)| Member {
            name: field.name().to_string(),
            title: field.title().map(|title| title.to_string()),
            offset: field.offset(),
            itemsize: field.size(),
            typestr: field.dtype().to_string(),
            shape: field.shape().dims().to_vec(),
            fields: named_members(own),
        })
        .collect()
}
