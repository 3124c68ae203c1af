//! Modules and kernel objects.

use alloc::sync::Arc;

use level_zero_sys::*;

use crate::spirv::{self, Entry, Parameter};
use crate::state::{Answer, State};

/// Maximum work-items of a group.
pub(crate) const MAX_GROUP: u32 = 1024;
/// Local memory of a group, in bytes.
pub(crate) const LOCAL_MEMORY: u32 = 65536;

/// A module of a context.
#[derive(Clone, Debug)]
pub(crate) struct Module {
    pub(crate) code: Arc<spirv::Module>,
    pub(crate) context: usize,
}

/// A kernel object with the arguments set so far.
#[derive(Clone, Debug)]
pub(crate) struct Kernel {
    module: Module,
    entry: usize,
    pub(crate) group: [u32; 3],
    arguments: Vec<Option<Argument>>,
    pub(crate) indirect: ze_kernel_indirect_access_flags_t,
}

/// An argument: a value, or bytes of local memory.
#[derive(Clone, Debug)]
pub(crate) enum Argument {
    Value(Vec<u8>),
    Local(usize),
}

/// A kernel with all arguments of a launch.
#[derive(Clone, Debug)]
pub(crate) struct Launch {
    kernel: Kernel,
    arguments: Vec<Argument>,
    /// The kernel object, which must live until the launch completes.
    pub(crate) number: usize,
    groups: [u32; 3],
}

impl Kernel {
    /// The kernel of that name.
    pub(crate) fn new(module: &Module, name: &core::ffi::CStr) -> Option<Self> {
        let entry = module.code.entries.iter().position(|entry| entry.name.as_c_str() == name)?;
        let arguments = vec![None; module.code.entries[entry].parameters.len()];
        let indirect = ze_kernel_indirect_access_flags_t(0);
        Some(Self { module: module.clone(), entry, group: [1; 3], arguments, indirect })
    }

    fn entry(&self) -> &Entry {
        &self.module.code.entries[self.entry]
    }

    /// Sets an argument of the parameter's size.
    pub(crate) fn set(&mut self, index: usize, argument: Argument) -> Answer {
        let parameter =
            *self.entry().parameters.get(index).ok_or(ZE_RESULT_ERROR_INVALID_KERNEL_ARGUMENT_INDEX)?;
        let fits = match (parameter, &argument) {
            (Parameter::Local, Argument::Local(bytes)) => *bytes > 0,
            (Parameter::Pointer, Argument::Value(bytes)) => bytes.len() == size_of::<usize>(),
            (Parameter::Value(size) | Parameter::Structure(size), Argument::Value(bytes)) => {
                bytes.len() == size
            }
            _ => false,
        };
        if !fits {
            return Err(ZE_RESULT_ERROR_INVALID_KERNEL_ARGUMENT_SIZE);
        }
        self.arguments[index] = Some(argument);
        Ok(())
    }

    /// The requirements of the kernel's code.
    pub(crate) fn properties(&self, out: &mut ze_kernel_properties_t) {
        let [x, y, z] = self.entry().required_group.unwrap_or_default();
        out.numKernelArgs = self.arguments.len() as u32;
        (out.requiredGroupSizeX, out.requiredGroupSizeY, out.requiredGroupSizeZ) = (x, y, z);
        (out.requiredSubgroupSize, out.requiredNumSubGroups, out.maxSubgroupSize, out.maxNumSubgroups) =
            (0, 0, 1, MAX_GROUP);
        out.localMemSize = self.module.code.local_bytes as u32;
        out.privateMemSize = self.module.code.private_bytes as u32;
    }

    /// A launch of that many groups with the current arguments.
    pub(crate) fn launch(&self, number: usize, groups: [u32; 3]) -> Answer<Launch> {
        let arguments: Option<Vec<Argument>> = self.arguments.iter().cloned().collect();
        let arguments = arguments.ok_or(ZE_RESULT_ERROR_INVALID_ARGUMENT)?;
        if self.entry().required_group.is_some_and(|required| required != self.group) {
            return Err(ZE_RESULT_ERROR_INVALID_GROUP_SIZE_DIMENSION);
        }
        let local = arguments.iter().map(|argument| match argument {
            Argument::Local(bytes) => *bytes as u64,
            Argument::Value(_) => 0,
        });
        if local.sum::<u64>() + self.module.code.local_bytes > u64::from(LOCAL_MEMORY) {
            return Err(ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY);
        }
        Ok(Launch { kernel: self.clone(), arguments, number, groups })
    }
}

impl Launch {
    /// Whether the kernel never finishes.
    pub(crate) fn is_endless(&self) -> bool {
        self.kernel.entry().is_endless(&self.kernel.module.code)
    }

    /// Every argument that is a pointer.
    pub(crate) fn pointers(&self) -> impl Iterator<Item = usize> {
        self.kernel.entry().parameters.iter().zip(&self.arguments).filter_map(|pair| match pair {
            (Parameter::Pointer, Argument::Value(bytes)) => {
                Some(usize::from_ne_bytes(bytes.as_slice().try_into().unwrap_or_default()))
            }
            _ => None,
        })
    }
}

impl State {
    /// Runs a kernel to its end. The error is the kernel's fault.
    pub(crate) fn run(&self, launch: &Launch) -> Result<(), spirv::Fault> {
        let kernel = &launch.kernel;
        let pointers: Vec<usize> = launch.pointers().collect();
        let may_touch = |base: usize, kind: ze_memory_type_t, bytes: usize| {
            let flag = match kind {
                ZE_MEMORY_TYPE_HOST => ZE_KERNEL_INDIRECT_ACCESS_FLAG_HOST,
                ZE_MEMORY_TYPE_DEVICE => ZE_KERNEL_INDIRECT_ACCESS_FLAG_DEVICE,
                _ => ZE_KERNEL_INDIRECT_ACCESS_FLAG_SHARED,
            };
            kernel.indirect.contains(flag) || pointers.iter().any(|at| *at >= base && at - base < bytes)
        };
        let memory = self.allocations.iter().filter(|(base, live)| {
            live.context == kernel.module.context && may_touch(**base, live.kind, live.size)
        });
        spirv::run(&spirv::Launch {
            module: &kernel.module.code,
            entry: kernel.entry(),
            group: kernel.group,
            groups: launch.groups,
            arguments: &launch.arguments,
            memory: memory.map(|(base, live)| (*base, live.size)).collect(),
            reversed: self.reorder,
        })
    }
}
