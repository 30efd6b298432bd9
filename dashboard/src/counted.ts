/** How many tasks are where: of one queue, or of several together. */
import { useEffect } from 'preact/hooks'
import { queues, setQueues } from './live.ts'
import { type Resource, useResource } from './resource.ts'
import type { Counts, Queue } from './types.ts'
import { number, short } from './words.ts'

/** What is shown of a queue, under which name, and which list has the tasks. */
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
  /** '12.3k', with a plus when there may be more. */
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

/** As they were last heard of; read once, until they are. */
export const useQueues = (path: '/stats' | '/queues'): Resource<{ readonly queues: readonly Queue[] }> => {
  const read = useResource<{ readonly queues: readonly Queue[] }>(path)
  useEffect(() => {
    // The page of queues reads again after a pause: that is newer than what was heard.
    if (read.data !== null && (path === '/queues' || queues.value === null)) setQueues(read.data.queues)
  }, [read.data])
  return queues.value === null ? read : { ...read, data: { queues: queues.value } }
}
