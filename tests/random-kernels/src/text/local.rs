//! The start of kernels with local memory.

use usm_kernel_ir::Scalar;

use super::Writer;

impl Writer {
    /// Declares the local array. Mostly items fill it, wait, and read an element.
    pub(super) fn local_memory(&mut self) -> String {
        let mut text = "#[local] let mut l: [u32; 8];\n".to_owned();
        if !self.random.percent(75) {
            return text;
        }
        text += &self.fill();
        if self.random.percent(85) {
            text += "barrier(LOCAL);\n";
        }
        if self.random.percent(60) {
            text += &format!("let read = l[{}];\no[global_id(0)] = read;\n", self.local_index());
            if self.random.percent(60) {
                text += "barrier(LOCAL);\n";
            }
        }
        text
    }

    /// Code that fills the local array, often not all of it.
    fn fill(&mut self) -> String {
        let start = self.word(&["local_id(0)", "local_id(0)", "0_u64", "local_id(0) + 1"]);
        let end = self.word(&["8_u64", "8_u64", "l.len()", "7_u64", "m", "local_size(0)"]);
        let step = self.word(&["local_size(0)", "local_size(0)", "1", "2", "n as u64 + 1"]);
        let some = self.word(&[
            "local_id(0) < 8",
            "local_id(0) == 0",
            "local_id(0) < local_size(0)",
            "n > 3",
            "local_id(0) + 1 < 8",
            "8 > local_id(0)",
        ]);
        match self.random.below(8) {
            0 | 1 => format!("for c in ({start}..{end}).step_by({step}) {{ l[c] = 1; }}\n"),
            2 => format!("let mut z = {start};\nwhile z < {end} {{ l[z] = 1; z += {step}; }}\n"),
            3 => format!("if {some} {{ l[local_id(0)] = 1; }}\n"),
            4 => format!("if local_id(0) == 0 {{ for c in 0..{end} {{ l[c] = 1; }} }}\n"),
            5 => "l[local_id(0)] = 1;\n".to_owned(),
            6 => format!(
                "if {some} {{ for c in (0..{end}).step_by({step}) {{ if {some} {{ l[c] = 1; }} }} }}\n"
            ),
            _ => {
                format!("for c in 0..{} {{ l[local_id(0) + c] = 1; }}\n", self.literal(Scalar::U64))
            }
        }
    }
}
