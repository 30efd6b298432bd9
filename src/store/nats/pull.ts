/** Takes messages from a consumer, but no longer than there are any: the client's own `fetch` waits for more. */
import { randomUUID } from 'node:crypto'
import type { Msg, NatsConnection } from '@nats-io/transport-node'
import { HoldfastError } from '../../core/errors.ts'

/** No answer at all within this time: contact is lost. */
const DEADLINE = 5_000
/** No further message within this time: what came is what there is. */
const PATIENCE = 1_000
/** 2.9 forgets now and then to answer that there is nothing: after this long it has. */
const OLD_DEADLINE = 500
/** Of an answer without a message: nobody is there, or not any more. */
const GONE: readonly number[] = [503, 409]

export interface Pulled {
  readonly messages: readonly Msg[]
  /** The consumer is not there any more. */
  readonly isGone: boolean
}

export const pull = (nc: NatsConnection, stream: string, consumer: string, batch: number): Promise<Pulled> =>
  new Promise((done, failed) => {
    const isOld = nc.info?.version.startsWith('2.9.') ?? false
    const messages: Msg[] = []
    const inbox = `_INBOX.${randomUUID()}`
    let isOver = false
    const end = (isGone: boolean): void => {
      isOver = true
      clearTimeout(timer)
      subscription.unsubscribe()
      done({ messages, isGone })
    }
    const heard = (error: Error | null, message: Msg): void => {
      // What comes under the inbox itself is not a message but how the pull ended.
      const isEnd = error !== null || message.subject === inbox
      if (!isEnd) messages.push(message)
      if (isEnd) end(GONE.includes(message?.headers?.code ?? 0))
      else if (messages.length === batch) end(false)
      else wait(PATIENCE, () => end(false))
    }
    /** After a busy spell of our own, timers come before what has arrived meanwhile: that is heard first. */
    const wait = (delay: number, then: () => void): void => {
      clearTimeout(timer)
      timer = setTimeout(() => {
        const before = messages.length
        setImmediate(() => {
          if (!isOver && messages.length === before) then()
        })
      }, delay)
    }
    const fail = (): void => {
      isOver = true
      subscription.unsubscribe()
      failed(new HoldfastError('STORE_UNAVAILABLE', `no answer from ${stream} within ${DEADLINE} ms`))
    }
    const silence = (): void => {
      wait(DEADLINE, fail)
      // It is there, so it had nothing to say.
      nc.flush().then(
        () => end(false),
        () => {},
      )
    }
    const subscription = nc.subscribe(inbox, { callback: heard })
    let timer: NodeJS.Timeout | undefined
    if (isOld) wait(OLD_DEADLINE, silence)
    else wait(DEADLINE, fail)
    const request = JSON.stringify({ batch, no_wait: true })
    nc.publish(`$JS.API.CONSUMER.MSG.NEXT.${stream}.${consumer}`, request, { reply: inbox })
  })
