/** The parts of a store that are objects of their own, behind the same guard as its calls. */
import type { DetachedKeys, Documents } from '../store.ts'

/** Runs a call while the store is open. */
export type Guard = <T>(call: () => Promise<T>) => Promise<T>

export const guardedDocuments = (documents: Documents, call: Guard): Documents => ({
  get: (name) => call(() => documents.get(name)),
  put: (name, value, version) => call(() => documents.put(name, value, version)),
  list: (prefix) => call(() => documents.list(prefix)),
  delete: (name, version) => call(() => documents.delete(name, version)),
})

export const guardedDetachedKeys = (keys: DetachedKeys, call: Guard): DetachedKeys => ({
  list: (page) => call(() => keys.list(page)),
  put: (records, now) => call(() => keys.put(records, now)),
})
