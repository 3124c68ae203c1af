//! The cases by topic. A case takes a fixture and panics if the backend breaks the promise.

use usm_core::backend::Dyn;

use crate::Fixture;

pub mod accounting;
pub mod array;
pub mod contexts;
pub mod failure;
pub mod kernel;
pub mod memory;
pub mod order;
pub mod plan;
pub mod pool;
pub mod pool_work;
pub mod query;
pub mod queue_memory;
pub mod sharing;
pub mod strided;
pub mod times;
pub mod transfer;
pub mod typed;

/// Turns every case into a test of the provider's backend. Without the backend the cases are
/// skipped, or fail if the environment variable `USM_REQUIRE` names the provider's runtime.
#[macro_export]
macro_rules! conformance_suite {
    ($module:ident, $provider:ty) => {
        mod $module {
            use super::*;

            $crate::conformance_cases!($crate::conformance_test, $module, $provider);
        }
    };
}

/// One test.
#[macro_export]
macro_rules! conformance_test {
    ($module:ident, $provider:ty, $group:ident, $case:ident) => {
        #[test]
        fn $case() {
            $crate::scarce::as_test(concat!(module_path!(), "::", stringify!($case)), || {
                let ran = <$provider as $crate::Provider>::with(|fixture| {
                    $crate::conformance::$group::$case(&fixture)
                });
                if let Err(reason) = ran {
                    $crate::skip::missing(<$provider as $crate::Provider>::RUNTIME, reason);
                }
            });
        }
    };
}

/// A case of the suite over the erased backend.
pub type ErasedCase = fn(&Fixture<'_, Dyn>);

/// The cases over the erased backend, by their names. The compiler generates their code here, and
/// the test programs of all runtimes link it, instead of compiling the whole suite again.
#[must_use]
#[allow(clippy::vec_init_then_push, reason = "the macro of all cases pushes them one by one")]
pub fn erased_cases() -> Vec<(&'static str, ErasedCase)> {
    let mut table: Vec<(&'static str, ErasedCase)> = Vec::new();
    crate::conformance_cases!(crate::conformance_case, table, Dyn);
    table
}

/// One case over a backend.
#[macro_export]
macro_rules! conformance_case {
    ($table:ident, $backend:ty, $group:ident, $case:ident) => {
        $table.push((stringify!($case), $crate::conformance::$group::$case::<$backend>));
    };
}

/// Every case as a row of a table, for a custom harness: a name with the provider's before it, and
/// a function that runs it.
#[macro_export]
macro_rules! conformance_table {
    ($provider:ty) => {{
        let mut table: Vec<(&'static str, fn() -> Result<(), String>)> = Vec::new();
        $crate::conformance_cases!($crate::conformance_row, table, $provider);
        table
    }};
}

/// One row.
#[macro_export]
macro_rules! conformance_row {
    ($table:ident, $provider:ty, $group:ident, $case:ident) => {
        $table.push((concat!(stringify!($provider), "::", stringify!($case)), {
            // Named after the case, so that the stack of a leak names it.
            fn $case() -> Result<(), String> {
                <$provider as $crate::Provider>::with(|fixture| $crate::conformance::$group::$case(&fixture))
            }
            $case
        }));
    };
}

/// The list of all cases: calls `$each!` with the group and the name of each.
#[macro_export]
macro_rules! conformance_cases {
    ($($each:ident)::+ , $module:ident, $provider:ty) => {
        $crate::conformance_cases!(@group [$($each)::+] $module $provider, memory:
            each_kind_is_allocated_as_asked every_alignment_is_honoured zero_size_is_refused
            alignments_that_are_no_power_of_two_are_refused more_than_max_alloc_is_refused_with_both_numbers
            sizes_beyond_the_address_space_are_refused the_unknown_kind_is_refused live_blocks_are_disjoint
            freed_memory_is_given_out_again memory_that_runs_out_is_an_error
            a_block_is_freed_once_by_its_owner one_call_serves_all_four_types a_buffer_of_zero_bytes_is_refused);
        $crate::conformance_cases!(@group [$($each)::+] $module $provider, query:
            interior_pointers_answer_with_base_and_size one_past_the_end_is_unknown a_freed_pointer_is_unknown
            pointers_of_nobody_are_unknown pointers_of_another_context_are_unknown
            the_runtime_agrees_with_the_registry host_memory_has_no_device);
        $crate::conformance_cases!(@group [$($each)::+] $module $provider, transfer:
            every_pair_of_kinds_copies ranges_copy_between_offsets a_range_outside_is_refused_with_the_numbers
            overlap_inside_an_allocation_is_refused neighbours_inside_an_allocation_copy
            no_bytes_are_fine_in_every_operation one_byte_too_many_is_refused_by_every_operation
            fills_of_every_width fills_follow_one_rule a_buffer_round_trip a_buffer_is_zero_before_anybody_writes_it a_buffer_and_bytes_of_the_program a_buffer_range_outside_is_refused
            buffers_are_filled_by_the_same_rule buffers_are_copied_between_and_within buffer_copies_are_checked
            hints_change_nothing);
        $crate::conformance_cases!(@group [$($each)::+] $module $provider, times:
            operations_of_a_timed_queue_follow_each_other
            operations_of_a_timed_queue_lie_between_its_first_and_last
            an_event_of_a_plain_queue_has_no_times);
        $crate::conformance_cases!(@group [$($each)::+] $module $provider, order:
            an_event_completes an_in_order_queue_keeps_the_order an_out_of_order_queue_keeps_dependencies
            two_queues_are_ordered_by_the_arrays readers_run_beside_each_other_and_before_the_next_writer
            a_barrier_follows_its_events waiting_for_a_queue_finishes_its_work
            an_event_of_another_context_is_refused a_view_waits_for_the_copy_in_flight
            a_view_waits_after_forgetting_every_handle a_forgotten_view_keeps_the_array_usable
            dropping_an_array_in_flight_is_ordered_after_its_use dropping_a_queue_in_flight_loses_nothing
            a_context_waits_for_the_work_of_dropped_queues);
        $crate::conformance_cases!(@group [$($each)::+] $module $provider, contexts:
            memory_of_another_context_is_refused a_buffer_of_another_context_is_refused
            memory_goes_back_to_its_own_context memory_of_a_peer_is_copied two_contexts_work_in_two_threads);
        $crate::conformance_cases!(@group [$($each)::+] $module $provider, failure:
            a_failed_event_fails_every_wait a_failure_takes_the_rest_of_an_in_order_queue
            a_failure_takes_its_dependants_out_of_order a_failure_crosses_queues
            the_failure_of_a_dropped_queue_is_reported_once what_fails_may_be_dropped_before);
        $crate::conformance_cases!(@group [$($each)::+] $module $provider, typed:
            zeroed_arrays_are_zero slices_round_trip_through_every_kind arrays_of_no_elements
            lengths_that_differ_are_refused_with_both_numbers the_runtime_kind_is_checked
            an_array_of_the_wrong_kind_comes_back an_uninitialised_array_is_a_copy_target
            the_host_writes_and_the_device_reads memory_too_small_for_its_elements_is_refused);
        $crate::conformance_cases!(@group [$($each)::+] $module $provider, plan:
            a_graph_runs_in_the_arena_of_its_plan an_out_of_order_plan_holds_in_every_order);
        $crate::conformance_cases!(@group [$($each)::+] $module $provider, pool:
            a_pool_serves_every_kind values_survive_the_reuse_of_their_blocks blocks_outlive_their_pool
            a_pool_refuses_as_its_context);
        $crate::conformance_cases!(@group [$($each)::+] $module $provider, pool_work:
            every_operation_works_on_pooled_blocks random_work_on_pooled_blocks_is_the_plain_one
            threads_draw_from_one_pool a_failure_stays_with_the_blocks_of_its_queue
            pooled_blocks_are_exported_as_memory_of_the_context kernels_run_on_pooled_blocks);
        $crate::conformance_cases!(@group [$($each)::+] $module $provider, accounting:
            statistics_follow_every_kind blocks_and_refusals_are_listed the_peak_is_that_of_the_sum history_keeps_the_last_records
            the_same_program_has_the_same_books
            a_failed_allocation_leaves_no_trace foreign_memory_releases_its_owner_after_use
            a_part_goes_back_to_its_source_with_its_uses threads_allocate_and_free
            threads_read_one_array twenty_thousand_pairs_leak_nothing);
        $crate::conformance_cases!(@group [$($each)::+] $module $provider, sharing:
            an_ipc_handle_names_its_memory_or_is_unsupported
            a_device_reaches_its_own_memory_or_peers_are_unsupported memory_of_the_program_is_used_in_place_or_unsupported
            memory_of_the_program_outlives_work_in_flight memory_of_the_runtime_is_no_memory_of_the_program);
        $crate::conformance_cases!(@group [$($each)::+] $module $provider, queue_memory:
            memory_of_a_queue_is_device_memory memory_of_a_queue_is_used_at_once
            memory_freed_in_flight_serves_the_next another_queue_uses_memory_of_a_queue
            memory_of_a_queue_outlives_its_queue other_kinds_from_a_queue_are_memory_of_its_context
            memory_of_a_queue_has_the_same_books memory_of_a_queue_is_not_shared_with_other_processes
            an_arena_in_memory_of_a_queue threads_take_memory_of_one_queue
            a_host_view_lives_across_memory_of_a_queue);
        $crate::conformance_cases!(@group [$($each)::+] $module $provider, kernel:
            one_source_in_one_dimension one_source_with_atomics one_source_in_two_dimensions one_source_has_one_arithmetic
            one_source_with_unwritten_memory
            one_source_in_an_unknown_order one_source_prints one_source_with_fields_of_several_types one_source_with_complex_numbers
            rodinia_pathfinder rodinia_hotspot rodinia_lud rodinia_bfs shoc_md shoc_spmv_vector shoc_md5
            shoc_scan polybench_fdtd_2d polybench_gramschmidt cubecl_gelu
            one_source_refuses_what_may_race one_source_runs_checked_what_is_not_proven one_source_names_an_index_outside
            one_source_keeps_an_index_outside_after_its_event_is_dropped one_source_collects_checked
            one_source_reports_every_index_outside_once one_source_checks_an_index_that_nobody_wrote
            one_source_reports_an_index_outside_after_a_panic one_source_reports_an_index_outside_with_its_copies
            one_source_collects_in_groups_of_any_size one_source_collects_in_sub_groups_of_its_own_size
            one_source_builds_checks_when_needed one_source_has_other_code_for_strides_of_zero one_source_visits_each_item_of_any_range
            one_source_leaves_loops_with_all_of_a_group
            one_source_with_functions one_source_with_collectives one_source_with_sub_groups one_source_with_every_atomic
            one_source_with_type_parameters one_source_with_orders one_source_with_labels one_source_with_limits
            one_source_with_sized_local_memory one_source_with_sums_across_barriers one_source_with_functions_of_numbers
            a_kernel_of_a_text_gives_what_the_interpreter_gives a_kernel_of_a_text_reports_an_index_outside a_kernel_of_a_text_takes_structures
            a_kernel_of_a_text_refuses_what_does_not_fit
            algorithms_by_order_are_those_of_std
            conversions_are_those_of_rust conversions_refuse_what_they_cannot
            programs_over_planes programs_in_groups programs_of_numbers
            reverse_is_the_plain_loop reduce_is_the_plain_loop matmul_is_the_plain_loop histogram_is_the_plain_loop
            saxpy_is_the_plain_loop scan_is_the_plain_loop a_kernel_over_a_plain_range_is_in_one_group constant_memory_belongs_to_its_launch
            local_arrays_are_apart_and_aligned ids_in_three_dimensions_are_row_major values_of_every_width_arrive
            atomic_additions_are_not_lost a_range_of_no_items_runs_nothing
            a_global_size_that_is_no_multiple_is_refused a_group_above_the_limit_is_refused
            local_memory_above_the_limit_is_refused an_array_shorter_than_the_range_is_refused
            a_group_of_another_shape_is_refused a_kernel_of_another_context_is_refused
            a_launch_over_memory_of_another_context_is_refused
            launches_on_one_array_run_in_turn launches_of_two_queues_are_ordered_by_the_arrays
            launches_are_ordered_among_copies_and_fills a_launch_waits_for_the_events_it_is_given
            what_a_launch_uses_may_be_dropped_at_once a_view_waits_for_a_forgotten_launch
            two_threads_launch_one_function kernels_reach_memory_of_the_program waits_of_many_threads_all_end code_in_a_foreign_format_is_refused a_build_error_has_the_compilers_log
            bytes_that_are_no_code_are_refused options_reach_the_compiler a_missing_function_is_named
            a_function_knows_its_limits a_function_knows_its_group_and_its_own_local_memory a_call_takes_interior_pointers a_call_takes_buffers an_interior_pointer_outside_is_refused
            a_wrong_number_of_arguments_is_refused an_argument_of_the_wrong_type_is_refused
            a_declared_function_is_launched_safely memory_named_as_used_is_reached_and_ordered
            module_and_function_may_be_dropped_in_flight a_spir_v_module_runs
            a_spir_v_module_cut_short_is_refused ptx_text_runs);
        $crate::conformance_cases!(@group [$($each)::+] $module $provider, array: arrays_are_lists_of_indices);
        $crate::conformance_cases!(@group [$($each)::+] $module $provider, strided:
            strided_copies_agree_with_the_reference large_layouts_copy_in_every_way
            an_array_is_reversed_in_place layouts_that_do_not_fit_are_refused);
    };
    (@group [$($each:ident)::+] $module:ident $provider:ty, $group:ident:) => {};
    (@group [$($each:ident)::+] $module:ident $provider:ty, $group:ident: $case:ident $($more:ident)*) => {
        $($each)::+!($module, $provider, $group, $case);
        $crate::conformance_cases!(@group [$($each)::+] $module $provider, $group: $($more)*);
    };
}
