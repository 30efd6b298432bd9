/**
 * The group of a task. Tasks stand in lines of the queue: 0 and 1 without a group, 2 and 3 with one; 1 and 3 may expire. Claims in turns hop
 * along holdfast_task_turns, which has every column that they ask for, and compare with what holdfast_task_places counts. A task
 * without a group is in neither. `expiring` stays for processes of an earlier release that still have the file open.
 */
export const GROUPS = `
  alter table holdfast_task add column task_group text;
  alter table holdfast_task add column line integer generated always as ((expires_at is not null) + 2 * (task_group is not null)) virtual;

  drop index holdfast_task_ready;
  drop index holdfast_task_live;
  create index holdfast_task_ready on holdfast_task (queue, type, line, priority desc, available_at, id) where status = 'pending';
  create index holdfast_task_live on holdfast_task (queue, type, line, priority, expires_at) where status = 'pending' and expires_at is not null;
  create index holdfast_task_turns on holdfast_task (queue, type, priority, task_group, available_at, id, expires_at) where task_group is not null and status = 'pending';
  create index holdfast_task_places on holdfast_task (queue, task_group) where task_group is not null and status = 'running';
  `
