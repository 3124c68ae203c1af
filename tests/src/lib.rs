//! The conformance suite and its helpers.
