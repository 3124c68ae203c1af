//! Prunes LLVM IR text without LLVM.
//!
//! The reader interprets only what pruning needs: function bodies, labels, terminators, calls of
//! `NRT_incref` and `NRT_decref`, and the stores that mark a raising block. It copies all other
//! text unchanged. The text may come from any LLVM version. An instruction must not share its line
//! with another, nor a reference operation with a label; no printer writes that.

use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use hashbrown::HashMap;

use crate::cfg::{BlockId, Cfg, CfgBuilder, OpKind, Value};
use crate::llvm_lex::{Token, tokens};
use crate::{Options, PruneStats, prune};

/// A pruned module.
#[derive(Clone, Debug)]
pub struct PrunedText {
    /// The module without the removed calls. In blocks with an increment the remaining decrements
    /// stand before the terminator.
    pub text: String,
    /// The functions with a body, in order, and the operations removed from each.
    pub functions: Vec<(String, PruneStats)>,
}

/// The place and reason of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TextError {
    /// The line, from 1.
    pub line: usize,
    /// The reason.
    pub kind: TextErrorKind,
}

/// The fault of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TextErrorKind {
    /// A terminator names a label that its function does not have.
    UnknownLabel,
    /// A label occurs twice in a function.
    DuplicateLabel,
    /// A block has no terminator, or instructions after it.
    NoTerminator,
    /// A function has no closing brace.
    UnclosedFunction,
    /// A reference operation does not end in its line, or shares the line with an instruction or a
    /// label.
    NotOneInstruction,
    /// The function exceeds the size of a graph.
    TooLarge,
}

impl fmt::Display for TextError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind {
            TextErrorKind::UnknownLabel => "a label that the function does not have",
            TextErrorKind::DuplicateLabel => "the label comes twice",
            TextErrorKind::NoTerminator => "the block does not end in one terminator",
            TextErrorKind::UnclosedFunction => "the function does not end",
            TextErrorKind::NotOneInstruction => "a reference operation must be alone in one line",
            TextErrorKind::TooLarge => "the function is too large",
        };
        write!(f, "line {}: {what}", self.line)
    }
}

impl core::error::Error for TextError {}

/// Prunes every function of a module.
pub fn prune_llvm(text: &str, options: &Options) -> Result<PrunedText, TextError> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut output = PrunedText { text: String::with_capacity(text.len()), functions: Vec::new() };
    let mut at = 0;
    while let Some(line) = lines.get(at) {
        if tokens(line).next() != Some(Token::Word("define")) {
            output.text.push_str(line);
            at += 1;
            continue;
        }
        let function = Function::read(&lines, at)?;
        let mut cfg = function.graph(&lines)?;
        let stats = prune(&mut cfg, options);
        function.write(&lines, &cfg, &mut output.text);
        output.functions.push((String::from(function.name), stats));
        at = function.end;
    }
    Ok(output)
}

/// The lines of one block.
struct Block<'a> {
    label: Option<&'a str>,
    /// The line of the label, or of the first instruction.
    line: usize,
    /// Reference operations: kind, value as written, line.
    ops: Vec<(OpKind, Operand<'a>, usize)>,
    /// Line of the terminator.
    terminator: Option<usize>,
    /// Labels that the terminator names, in order, with their lines.
    successors: Vec<(&'a str, usize)>,
    raises: bool,
}

/// The value that a reference operation counts, as written.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Operand<'a> {
    Null,
    Local(&'a str),
    Global(&'a str),
    /// A constant expression: the line from the opening bracket on.
    Constant(&'a str),
}

/// The lines of one function.
struct Function<'a> {
    name: &'a str,
    start: usize,
    /// The line behind the closing brace.
    end: usize,
    blocks: Vec<Block<'a>>,
}

fn error<T>(line: usize, kind: TextErrorKind) -> Result<T, TextError> {
    Err(TextError { line: line + 1, kind })
}

impl<'a> Function<'a> {
    fn read(lines: &[&'a str], start: usize) -> Result<Self, TextError> {
        let mut name = "";
        let mut at = start;
        // The header may take several lines and ends with the opening brace of the body.
        loop {
            let Some(line) = lines.get(at) else { return error(start, TextErrorKind::UnclosedFunction) };
            let mut last = None;
            for token in tokens(line) {
                if let (Token::Global(global), "") = (token, name) {
                    name = global;
                }
                last = Some(token);
            }
            // A body on its header's line would otherwise include the next function.
            if at > start && tokens(line).next() == Some(Token::Word("define")) {
                return error(start, TextErrorKind::UnclosedFunction);
            }
            at += 1;
            if last == Some(Token::Sign('{')) {
                break;
            }
        }
        let mut blocks: Vec<Block<'a>> = Vec::new();
        loop {
            let Some(line) = lines.get(at) else { return error(start, TextErrorKind::UnclosedFunction) };
            let mut rest = tokens(line);
            match (rest.next(), rest.next()) {
                (None, _) => {}
                (Some(Token::Sign('}')), None) => break,
                (Some(Token::Word(label) | Token::Quoted(label)), Some(Token::Sign(':'))) => {
                    let mut block = Block::new(Some(label), at);
                    block.read(rest.rest(), at)?;
                    if !block.ops.is_empty() {
                        // The pruner removes and moves whole lines.
                        return error(at, TextErrorKind::NotOneInstruction);
                    }
                    blocks.push(block);
                }
                // Debug records and use-list orders are no instructions.
                (Some(Token::Sign('#')), _) | (Some(Token::Word("uselistorder" | "uselistorder_bb")), _) => {}
                _ => {
                    if blocks.is_empty() {
                        blocks.push(Block::new(None, at));
                    }
                    if let Some(block) = blocks.last_mut() {
                        block.read(line, at)?;
                    }
                }
            }
            at += 1;
        }
        Ok(Self { name, start, end: at + 1, blocks })
    }

    fn graph(&self, lines: &[&str]) -> Result<Cfg, TextError> {
        let mut builder = CfgBuilder::new();
        let mut ids: HashMap<&str, BlockId> = HashMap::new();
        for block in &self.blocks {
            let id = builder.block(block.raises);
            if let Some(label) = block.label {
                if ids.insert(label, id).is_some() {
                    return error(block.line, TextErrorKind::DuplicateLabel);
                }
            }
            if block.terminator.is_none() {
                return error(block.line, TextErrorKind::NoTerminator);
            }
        }
        let mut values: HashMap<Operand<'_>, Value> = HashMap::new();
        for (id, block) in (0u32..).map(BlockId).zip(&self.blocks) {
            for &(label, line) in &block.successors {
                let Some(&to) = ids.get(label) else { return error(line, TextErrorKind::UnknownLabel) };
                builder.edge(id, to);
            }
            for &(kind, operand, _) in &block.ops {
                let next = Value(values.len() as u32);
                let value = if operand == Operand::Null {
                    Value::NULL
                } else {
                    *values.entry(operand).or_insert(next)
                };
                builder.op(id, kind, value);
            }
        }
        builder.build().or_else(|_| error(self.start.min(lines.len()), TextErrorKind::TooLarge))
    }

    fn write(&self, lines: &[&str], cfg: &Cfg, out: &mut String) {
        let mut at = self.start;
        // Operations have the numbers of their order in the text.
        let mut first = 0;
        let mut keep_flags: Vec<bool> = Vec::new();
        for (id, block) in (0u32..).map(BlockId).zip(&self.blocks) {
            keep_flags.clear();
            keep_flags.resize(block.ops.len(), false);
            for op in cfg.ops(id) {
                if let Some(flag) = (op.id as usize).checked_sub(first).and_then(|at| keep_flags.get_mut(at))
                {
                    *flag = true;
                }
            }
            first += block.ops.len();
            let moves = block.ops.iter().any(|op| op.0 == OpKind::Inc);
            let mut ops = block.ops.iter().zip(&keep_flags).peekable();
            while at < block.terminator.unwrap_or(block.line) {
                match ops.next_if(|(op, _)| op.2 == at) {
                    None => out.push_str(lines[at]),
                    Some((op, true)) if !(moves && op.0 == OpKind::Dec) => out.push_str(lines[at]),
                    Some(_) => {}
                }
                at += 1;
            }
            if moves {
                for (op, _) in
                    block.ops.iter().zip(&keep_flags).filter(|(op, flag)| **flag && op.0 == OpKind::Dec)
                {
                    out.push_str(lines[op.2]);
                }
            }
        }
        while at < self.end {
            out.push_str(lines[at]);
            at += 1;
        }
    }
}

impl<'a> Block<'a> {
    fn new(label: Option<&'a str>, line: usize) -> Self {
        Self { label, line, ops: Vec::new(), terminator: None, successors: Vec::new(), raises: false }
    }

    /// Reads one line of instructions.
    fn read(&mut self, line: &'a str, at: usize) -> Result<(), TextError> {
        if self.terminator.is_none() && is_terminator(line) {
            self.terminator = Some(at);
        }
        if self.terminator.is_some() {
            // All lines up to the next label belong to the terminator.
            if reference_call(line, at)?.is_some() {
                return error(at, TextErrorKind::NoTerminator);
            }
            let mut tokens = tokens(line).peekable();
            while let Some(token) = tokens.next() {
                if let (Token::Word("label"), Some(&Token::Local(label))) = (token, tokens.peek()) {
                    self.successors.push((label, at));
                }
            }
            return Ok(());
        }
        if let Some((kind, operand)) = reference_call(line, at)? {
            self.ops.push((kind, operand, at));
        }
        self.raises |= raises(line);
        Ok(())
    }
}

/// Whether a line begins a terminator.
fn is_terminator(line: &str) -> bool {
    let mut tokens = tokens(line);
    let mut first = tokens.next();
    if let Some(Token::Local(_)) = first {
        tokens.next();
        first = tokens.next();
    }
    let Some(Token::Word(word)) = first else { return false };
    matches!(
        word,
        "ret"
            | "br"
            | "switch"
            | "indirectbr"
            | "invoke"
            | "callbr"
            | "resume"
            | "unreachable"
            | "cleanupret"
            | "catchret"
            | "catchswitch"
    )
}

/// Whether a line stores to a pointer named `excinfo` with the mark of an exception.
fn raises(line: &str) -> bool {
    let mut tokens = tokens(line);
    if tokens.next() != Some(Token::Word("store")) {
        return false;
    }
    let (mut operand, mut depth, mut to_excinfo) = (0, 0usize, false);
    for token in tokens {
        match token {
            Token::Sign('(' | '[' | '{' | '<') => depth += 1,
            Token::Sign(')' | ']' | '}' | '>') => depth = depth.saturating_sub(1),
            Token::Sign(',') if depth == 0 => operand += 1,
            Token::Local(name) if operand == 1 && depth == 0 => to_excinfo = name == "excinfo",
            Token::Metadata("numba_exception_output") => return to_excinfo,
            _ => {}
        }
    }
    false
}

/// The reference operation of a line, if it is one.
fn reference_call(line: &str, at: usize) -> Result<Option<(OpKind, Operand<'_>)>, TextError> {
    let callee = |token| match token {
        Token::Global("NRT_incref") => Some(OpKind::Inc),
        Token::Global("NRT_decref") => Some(OpKind::Dec),
        _ => None,
    };
    // A fast path: most lines contain neither name.
    if !line.contains("NRT_") {
        return Ok(None);
    }
    let mut rest = tokens(line).peekable();
    rest.next_if(|token| matches!(token, Token::Word("tail" | "musttail" | "notail")));
    let is_call = rest.next_if_eq(&Token::Word("call")).is_some();
    let mut depth = 0usize;
    while let Some(token) = rest.next() {
        match token {
            Token::Sign('(') => depth += 1,
            Token::Sign(')') => depth = depth.saturating_sub(1),
            _ => {}
        }
        let (Some(kind), 0, Some(Token::Sign('('))) = (callee(token), depth, rest.peek()) else { continue };
        if !is_call {
            // Called by another instruction than a call, or behind another instruction on the line.
            let mut first = tokens(line);
            let is_invoke = first.any(|token| matches!(token, Token::Word("invoke" | "callbr")));
            return if is_invoke { Ok(None) } else { error(at, TextErrorKind::NotOneInstruction) };
        }
        rest.next();
        let operand = operand(&mut rest, line)
            .ok_or(TextError { line: at + 1, kind: TextErrorKind::NotOneInstruction })?;
        let mut previous = Token::Sign(' ');
        for token in rest {
            let another = matches!(
                token,
                Token::Word("call" | "tail" | "store" | "ret" | "br" | "switch" | "unreachable")
            ) || matches!((previous, token), (Token::Local(_), Token::Sign('=')));
            if another {
                return error(at, TextErrorKind::NotOneInstruction);
            }
            previous = token;
        }
        return Ok(Some((kind, operand)));
    }
    Ok(None)
}

/// The argument of a call, behind its opening bracket; `None` if the bracket is not closed.
fn operand<'a>(rest: &mut impl Iterator<Item = Token<'a>>, line: &'a str) -> Option<Operand<'a>> {
    let mut depth = 1usize;
    let mut operand = Operand::Constant(line.split_once('(').map_or(line, |(_, arguments)| arguments));
    let mut is_nested = false;
    for token in rest {
        match token {
            Token::Sign('(') => {
                depth += 1;
                // Attributes such as `dereferenceable(8)` close their bracket before the value;
                // nothing follows an expression.
                is_nested = true;
            }
            Token::Sign(')') => {
                depth -= 1;
                if depth == 0 {
                    return Some(operand);
                }
            }
            Token::Local(name) if depth == 1 => operand = Operand::Local(name),
            Token::Global(name) if depth == 1 => operand = Operand::Global(name),
            Token::Word("null") if depth == 1 && !is_nested => operand = Operand::Null,
            _ => {}
        }
    }
    None
}
