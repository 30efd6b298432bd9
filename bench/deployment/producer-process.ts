/** The process that submits. Its argument is the name of the system. */
import { setTimeout as sleep } from 'node:timers/promises'
import { timed } from '../system.ts'
import type { Producer, Use } from './adapter.ts'
import { cpuSeconds, micros, serve } from './serve.ts'
import { submitSteadily } from './steady-load.ts'
import { systemNamed } from './systems.ts'
import { type Task, tasksOf } from './tasks.ts'

const adapter = systemNamed(process.argv[2]!).adapter()
let producer: Producer
let taskOf: (n: number) => Task

/** Tasks whose destination is the same, at most `perCall` together. */
const callsOf = function* (tasks: Iterable<Task>, perCall: number): Generator<readonly Task[]> {
  const gathered = new Map<string, Task[]>()
  for (const task of tasks) {
    const destination = producer.destinationOf(task)
    const some = gathered.get(destination) ?? []
    some.push(task)
    if (some.length === perCall) {
      yield some
      gathered.delete(destination)
    } else gathered.set(destination, some)
  }
  yield* gathered.values()
}

const firstTasks = function* (count: number): Generator<Task> {
  for (let n = 0; n < count; n++) yield taskOf(n)
}

const verbs = {
  async open(use: Use): Promise<void> {
    producer = await adapter.openProducer(use)
    taskOf = tasksOf(use.shape)
  },

  /** The first `count` tasks of the shape, in calls of `perCall`, one after the other. */
  insert: ({ count, perCall }: { readonly count: number; readonly perCall: number }) =>
    timed(async () => {
      for (const tasks of callsOf(firstTasks(count), perCall)) await producer.submitMany(tasks)
    }),

  steady: ({ rate, seconds }: { readonly rate: number; readonly seconds: number }) =>
    submitSteadily({
      rate,
      seconds,
      submit: (n) => {
        const task = taskOf(n)
        return producer.submit({ ...task, input: { ...task.input, at: micros() } })
      },
    }),

  /** How many tasks are left when writing has stopped. A counted outcome may become visible to other processes a moment later. */
  async countUnfinished(expected: number): Promise<number> {
    let count = await producer.countUnfinished()
    for (let tries = 0; tries < 10 && count !== expected; tries++) {
      await sleep(100)
      count = await producer.countUnfinished()
    }
    return count
  },

  async close(): Promise<{ cpuSeconds: number }> {
    await producer.close()
    return { cpuSeconds: cpuSeconds() }
  },
}

export type ProducerVerbs = typeof verbs

serve(verbs)
