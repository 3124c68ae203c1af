//! The part of Python's pickle protocol 2 that a document of dictionaries, lists, numbers and texts
//! needs.

use alloc::vec::Vec;

/// A pickle under construction.
#[derive(Debug)]
pub(crate) struct Pickle {
    bytes: Vec<u8>,
}

impl Pickle {
    pub(crate) fn new() -> Self {
        Self { bytes: alloc::vec![0x80, 2] }
    }

    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.bytes.push(b'.');
        self.bytes
    }

    /// Pairs of [`key`](Self::key) and a value.
    pub(crate) fn dict(&mut self, fill: impl FnOnce(&mut Self)) {
        self.bytes.extend_from_slice(b"}(");
        fill(self);
        self.bytes.push(b'u');
    }

    pub(crate) fn key(&mut self, name: &str) -> &mut Self {
        self.text(name);
        self
    }

    pub(crate) fn list(&mut self, fill: impl FnOnce(&mut Self)) {
        self.bytes.extend_from_slice(b"](");
        fill(self);
        self.bytes.push(b'e');
    }

    pub(crate) fn tuple(&mut self, fill: impl FnOnce(&mut Self)) {
        self.bytes.push(b'(');
        fill(self);
        self.bytes.push(b't');
    }

    pub(crate) fn boolean(&mut self, value: bool) {
        self.bytes.push(if value { 0x88 } else { 0x89 });
    }

    /// Nine bytes, the last one zero: the sign.
    pub(crate) fn number(&mut self, value: u64) {
        self.bytes.extend_from_slice(&[0x8a, 9]);
        self.bytes.extend_from_slice(&value.to_le_bytes());
        self.bytes.push(0);
    }

    /// Longer texts are cut at 4 GiB.
    pub(crate) fn text(&mut self, text: &str) {
        let mut end = text.len().min(u32::MAX as usize);
        while !text.is_char_boundary(end) {
            end -= 1;
        }
        self.bytes.push(b'X');
        self.bytes.extend_from_slice(&(end as u32).to_le_bytes());
        self.bytes.extend_from_slice(&text.as_bytes()[..end]);
    }
}
