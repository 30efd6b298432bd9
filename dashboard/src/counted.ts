/** Task counts of one queue, or of several together. */
import { useEffect } from 'preact/hooks'
import { queues, setQueues } from './live.ts'
import { type Resource, useResource } from './resource.ts'
import { number, short } from './text/words.ts'
import type { Counts, Queue } from './types.ts'

/** The counts shown for a queue, their labels, and the filter of the linked list. */
export const COUNTED: readonly (readonly [name: keyof Counts, label: string, view: string])[] = [
  ['ready', 'Ready', 'ready'],
  ['running', 'Running', 'running'],
  ['scheduled', 'Scheduled', 'scheduled'],
  ['retrying', 'Retrying', 'retrying'],
  ['completed', 'Completed', 'completed'],
  ['failed', 'Dead', 'dead'],
]

export const sum = (of: readonly Queue[], name: keyof Counts): number => of.reduce((so, queue) => so + queue[name], 0)

interface Shown {
  readonly count: number
  /** '12.3k', with a plus if the count is a lower bound. */
  readonly text: string
  readonly title: string
}

export const shownCount = (of: readonly Queue[], name: keyof Counts): Shown => {
  const count = sum(of, name)
  const isCapped = of.some(({ capped }) => capped.includes(name))
  return {
    count,
    text: `${short(count)}${isCapped ? '+' : ''}`,
    title: isCapped ? `at least ${number(count)}` : number(count),
  }
}

/** The latest counts from the stream; read once until the first ones arrive. */
export const useQueues = (path: '/stats' | '/queues'): Resource<{ readonly queues: readonly Queue[] }> => {
  const read = useResource<{ readonly queues: readonly Queue[] }>(path)
  useEffect(() => {
    // The queues page reads again after a pause or resume, which is newer than the stream.
    if (read.data !== null && (path === '/queues' || queues.value === null)) setQueues(read.data.queues)
  }, [read.data])
  return queues.value === null ? read : { ...read, data: { queues: queues.value } }
}
