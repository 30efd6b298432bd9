/**
 * What tasks remember between their runs: one row for each step, sleep, wait or signal. A row belongs to one generation of its task; those of
 * an earlier one are no longer read. A task is parked while `parked_revision` is its revision, so that a claim need not clear it.
 */
export const JOURNAL = `
  alter table holdfast_task add column parked text;
  alter table holdfast_task add column parked_revision integer;
  create index holdfast_task_parked on holdfast_task (queue, available_at) where status = 'pending' and parked_revision = revision;

  create table holdfast_journal (
    task integer not null,
    generation integer not null,
    n integer not null,
    entry text not null,
    primary key (task, generation, n)
  ) strict, without rowid;
  `
