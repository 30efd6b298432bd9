/** On a thread of its own, so that it competes for the machine only: connects, and again whenever it is closed. */
import { connect } from 'node:net'
import { setTimeout as pause } from 'node:timers/promises'
import { parentPort, workerData } from 'node:worker_threads'

export interface Attack {
  readonly port: number
  readonly from: string
  /** How many connections, and what each sends first. */
  readonly waves: readonly (readonly [count: number, first: string])[]
}

const AGAIN = 3_000
const { port, from, waves } = workerData as Attack
let tried = 0

const one = async (first: string): Promise<never> => {
  for (;;) {
    const socket = connect({ port, host: '127.0.0.1', localAddress: from })
    socket.on('error', () => {}).on('data', () => {})
    if (first !== '') socket.write(first)
    await new Promise((closed) => {
      socket.once('close', closed)
      // One that was taken counts as one that was tried.
      socket.once('connect', () => parentPort!.postMessage(++tried))
    })
    await pause(AGAIN)
  }
}

for (const [count, first] of waves) for (let n = 0; n < count; n++) void one(first)
