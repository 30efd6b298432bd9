/** Finds recent changes that no other index has. A task on its way from submit to completed never enters it. */
export const changes = (schema: string): string =>
  `create index task_moved on ${schema}.task (updated_at) where revision > 1 and status <> 'running' and (status <> 'completed' or updated_at <> completed_at);`
