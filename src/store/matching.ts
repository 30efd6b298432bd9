/** Whether a task matches a query, for stores that have to check tasks one by one. */
import type { Instant, TaskRecord } from '../core/task.ts'
import { matchesView } from '../core/views.ts'
import type { Query } from './store.ts'

/** Whether a task matches a query. */
export const matches = (task: TaskRecord, query: Query, now: Instant): boolean =>
  (query.queue === undefined || task.queue === query.queue) &&
  (query.type === undefined || task.type === query.type) &&
  (query.group === undefined || task.group === query.group) &&
  (query.views === undefined || query.views.some((view) => matchesView(task, view, now))) &&
  (query.tag === undefined || task.tags?.[query.tag.name] === query.tag.value) &&
  (query.workerId === undefined || task.lease?.workerId === query.workerId) &&
  (query.createdAfter === undefined || task.createdAt > query.createdAfter) &&
  (query.createdBefore === undefined || task.createdAt < query.createdBefore) &&
  (query.completedBefore === undefined || (task.completedAt !== null && task.completedAt < query.completedBefore)) &&
  (query.updatedAfter === undefined || task.updatedAt > query.updatedAfter) &&
  (query.updatedBefore === undefined || task.updatedAt < query.updatedBefore)
