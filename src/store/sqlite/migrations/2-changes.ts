/**
 * Finds recent changes. Running tasks and tasks that never moved are found by other indexes, so a task on its way from
 * submit to completed enters this index once (docs/decisions/0010).
 */
export const CHANGES = `create index holdfast_task_moved on holdfast_task (updated_at) where revision > 1 and status <> 'running';`
