//! The command as scripts use it: standard output, exit codes, messages. Every test runs the
//! binary.
#![allow(clippy::std_instead_of_alloc, reason = "a program for people: std is always there")]

mod demo;
mod devices;
mod hostile;
mod interface;
#[cfg(unix)]
mod interrupt;
mod kernel;
mod onnx;
mod onnx_control;
mod onnx_files;
mod onnx_quantised;
mod onnx_stated;
mod onnx_views;
mod page;
mod plan;
mod plan_fields;
mod plan_parts;
mod plan_proof;
mod plan_recompute;
mod plan_run;
#[path = "../../../usm-plan/src/onnx/proto.rs"]
mod proto;
mod prune;
mod range_plan;
mod replay;
mod run;
mod run_devices;
mod run_file;
mod runtimes;
mod shell;
#[cfg(unix)]
mod strangers;
mod support;
mod usage;
