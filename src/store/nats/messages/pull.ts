/** Takes the messages that a consumer has now. The client's own `fetch` waits for more. */
import type { Msg } from '@nats-io/transport-node'
import { HoldfastError } from '../../../core/errors.ts'
import type { Connected } from '../connection/connection.ts'
import { apiSubject, newInbox } from '../connection/prefixes.ts'

/** Without any reply within this time, contact is lost. */
const DEADLINE = 5_000
/** Without another message within this time, the pull is complete. */
const PATIENCE = 1_000
/** Servers of version 2.9 sometimes do not report that there is nothing. After this time they are asked. */
const OLD_DEADLINE = 500
/** The status of a reply without a message: the consumer does not exist, or no longer does. */
const GONE: readonly number[] = [503, 409]

export interface Pulled {
  readonly messages: readonly Msg[]
  /** The consumer no longer exists. */
  readonly isGone: boolean
}

export const pull = (
  { nc, requests }: Pick<Connected, 'nc' | 'requests'>,
  stream: string,
  consumer: string,
  batch: number,
): Promise<Pulled> =>
  new Promise((done, failed) => {
    const subject = apiSubject(nc, `CONSUMER.MSG.NEXT.${stream}.${consumer}`)
    const isOld = nc.info?.version.startsWith('2.9.') ?? false
    const messages: Msg[] = []
    const inbox = newInbox(nc)
    let isOver = false
    const stop = (): void => {
      isOver = true
      clearTimeout(timer)
      subscription.unsubscribe()
      stopWatching()
    }
    const end = (isGone: boolean): void => {
      stop()
      done({ messages, isGone })
    }
    const fail = (error: Error): void => {
      stop()
      failed(error)
    }
    const receive = (error: Error | null, message: Msg): void => {
      // A reply on the inbox itself is not a message: it reports how the pull ended.
      const isEnd = error !== null || message.subject === inbox
      if (!isEnd) messages.push(message)
      if (isEnd) end(GONE.includes(message?.headers?.code ?? 0))
      else if (messages.length === batch) end(false)
      else wait(PATIENCE, () => end(false))
    }
    /** After this process was busy, timers fire before replies that have already arrived. Those are handled first. */
    const wait = (delay: number, then: () => void): void => {
      clearTimeout(timer)
      timer = setTimeout(() => {
        const before = messages.length
        setImmediate(() => {
          if (!isOver && messages.length === before) then()
        })
      }, delay)
    }
    const giveUp = (): void =>
      fail(new HoldfastError('STORE_UNAVAILABLE', `no answer from ${stream} within ${DEADLINE} ms`))
    const silence = (): void => {
      wait(DEADLINE, giveUp)
      // The server answers, so the consumer had nothing.
      nc.flush().then(
        () => end(false),
        () => {},
      )
    }
    const subscription = nc.subscribe(inbox, { callback: receive })
    const stopWatching = requests.onRefusal(subject, fail)
    let timer: NodeJS.Timeout | undefined
    if (isOld) wait(OLD_DEADLINE, silence)
    else wait(DEADLINE, giveUp)
    const request = JSON.stringify({ batch, no_wait: true })
    nc.publish(subject, request, { reply: inbox })
  })
