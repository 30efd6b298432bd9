/** A whole store of your own in one JSON file: for one process and a few hundred tasks, as each write replaces the file. */
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { connect } from 'holdfast'
import type { Committed, Document, Inserted, KeyRecord, Removed, Renewed, Store, TaskRecord } from 'holdfast/store'
import {
  applyChange,
  canCommit,
  claim,
  claimOrder,
  cutToWeight,
  HoldfastError,
  isOverdue,
  isReady,
  keyIsLive,
  matches,
  nextClaimAt,
  permitted,
  renewed,
  UNLIMITED,
  WakeListeners,
  weightOf,
  withoutHistory,
} from 'holdfast/store'

interface Content {
  readonly tasks: Record<string, TaskRecord>
  readonly keys: Record<string, KeyRecord>
  readonly documents: Record<string, Document>
}

export const openJsonFile = (path: string): Store => {
  const address = `json:${path}`
  const listeners = new WakeListeners()
  /** What the file says; null: closed. Kept as text, so that a write that fails has changed nothing. */
  let text: string | null = '{ "tasks": {}, "keys": {}, "documents": {} }'
  if (existsSync(path)) text = readFileSync(path, 'utf8')

  const read = (): Content => {
    if (text === null) throw new HoldfastError('STORE_CLOSED', `${address} is closed`)
    return JSON.parse(text) as Content
  }

  /** After a crash the file is the old one or the new one, never a part of either. */
  const write = (content: Content): void => {
    const next = JSON.stringify(content)
    writeFileSync(`${path}.new`, next, { mode: 0o600, flush: true })
    renameSync(`${path}.new`, path)
    text = next
  }

  return {
    capabilities: new Set(['exact-order', 'host-clock', 'due-of-all-queues']),
    address,
    leaseTtl: 5_000,
    claimsAtOnce: 1,
    async now() {
      read()
      return { at: Date.now(), uncertainty: 0 }
    },

    async insert(insertions, { now }) {
      const content = read()
      const inserted = insertions.map(({ task, key, replaces }): Inserted => {
        const known = key && content.keys[key.key]
        const holder = known ? (content.tasks[known.taskId] ?? null) : null
        if (known && known.taskId !== replaces && keyIsLive(known, holder !== null, now ?? Date.now()))
          return { outcome: 'existing', key: known, task: holder }
        const clash = content.tasks[task.id]
        if (clash) return { outcome: 'clash', task: clash }
        content.tasks[task.id] = task
        if (key) content.keys[key.key] = key
        return { outcome: 'created' }
      })
      write(content)
      listeners.notify(insertions.map(({ task }) => task.queue))
      return inserted
    },

    async claim(request) {
      const { queue, types, limit, op, workerId, leaseTtl, dueLimit, limits = UNLIMITED, id } = request
      const now = request.now ?? Date.now()
      const content = read()
      const all = Object.values(content.tasks)
      const due = all.filter((task) => isOverdue(task, now)).slice(0, dueLimit)
      const wanted = all.filter((task) => task.queue === queue && (types?.includes(task.type) ?? true))
      const ready = wanted.filter((task) => isReady(task, now) && (id ?? task.id) === task.id).sort(claimOrder)
      const running = all.filter((task) => task.status === 'running' && task.queue === queue)
      const { tasks, ...held } = permitted(ready, running, limits, limit, now)
      const leased = tasks.map((task, i) =>
        applyChange(task, claim(task, { token: `${op}.${i + 1}`, workerId, leaseTtl, now })),
      )
      for (const task of leased) content.tasks[task.id] = task
      if (leased.length > 0) write(content)
      const next = nextClaimAt(Object.values(content.tasks), request, now)
      return { leased: leased.map(withoutHistory), due: due.map(withoutHistory), next, ...held }
    },

    async commit(changes) {
      const content = read()
      const committed = changes.map((change): Committed => {
        const task = content.tasks[change.id]
        if (!task) return 'gone'
        if (!canCommit(task, change)) return 'conflict'
        content.tasks[task.id] = applyChange(task, change)
        return 'written'
      })
      write(content)
      listeners.notify(changes.filter(({ set }) => set.status === 'pending').map(({ queue }) => queue))
      return committed
    },

    async renew(renewals, now) {
      const content = read()
      const results = renewals.map((renewal): Renewed => {
        const task = content.tasks[renewal.id]
        const after = task ? renewed(task, renewal, now ?? Date.now()) : null
        if (after === null) return 'lost'
        content.tasks[after.id] = after
        return after.cancelRequestedAt === null ? 'held' : 'cancel'
      })
      write(content)
      return results
    },

    async remove(removals) {
      const content = read()
      const removed = removals.map(({ id, revision, endKey }): Removed => {
        const task = content.tasks[id]
        if (!task) return 'gone'
        if (task.revision !== revision) return 'conflict'
        delete content.tasks[id]
        const key = task.idempotencyKey
        if (endKey && key !== null && content.keys[key]?.taskId === id) delete content.keys[key]
        return 'removed'
      })
      write(content)
      return removed
    },

    async get(ids) {
      const { tasks } = read()
      return ids.map((id) => tasks[id] ?? null)
    },
    async find(key) {
      const { keys, tasks } = read()
      return keys[key] ? { key: keys[key], task: tasks[keys[key].taskId] ?? null } : null
    },

    async list(query, { order, limit, after, now }) {
      const isForward = order === 'oldest'
      const tasks = Object.values(read().tasks)
        .filter((task) => matches(task, query, now ?? Date.now()))
        .filter(({ id }) => after === undefined || (isForward ? id > after : id < after))
        .sort((a, b) => (a.id < b.id === isForward ? -1 : 1))
        .slice(0, limit)
      return { tasks: cutToWeight(tasks, weightOf).taken.map(withoutHistory), stoppedAt: null }
    },
    async count(query, { cap, now }) {
      const { length } = Object.values(read().tasks).filter((task) => matches(task, query, now ?? Date.now()))
      return { count: Math.min(length, cap), capped: length > cap }
    },

    documents: {
      get: async (name) => read().documents[name] ?? null,
      list: async (prefix) =>
        Object.values(read().documents)
          .filter(({ name }) => name.startsWith(prefix))
          .sort((a, b) => (a.name < b.name ? -1 : 1)),
      async put(name, value, version) {
        const content = read()
        if ((content.documents[name]?.version ?? 0) !== version) return null
        content.documents[name] = { name, value, version: version + 1 }
        write(content)
        return version + 1
      },
      async delete(name, version) {
        const content = read()
        if (content.documents[name] && content.documents[name].version !== version) return false
        delete content.documents[name]
        write(content)
        return true
      },
    },

    wake: (listener) => listeners.add(listener),
    async close() {
      listeners.clear()
      text = null
    },
  }
}

if (import.meta.main) {
  await using client = await connect(openJsonFile(process.argv[2] ?? './tasks.json'))
  const { id } = await client.submit('greet', { name: 'Ada' })
  const worker = client.worker().handle('greet', (input) => `Hello, ${(input as { name: string }).name}`)
  worker.start()
  console.log(await client.wait(id))
}
