/** `holdfast amend ID`: changes a pending task. */
import type { AmendOptions, Duration } from '../../index.ts'
import { given, inputValue, instantText, integer, tags } from '../program/input.ts'
import type { GlobalOptions } from '../program/session.ts'
import { eachTask } from './shared/each-task.ts'

interface Options extends GlobalOptions {
  readonly priority?: string
  readonly at?: string
  readonly delay?: Duration
  readonly ttl?: Duration
  readonly expiresAt?: string
  readonly input?: string
  readonly group?: string
  readonly tag?: readonly string[]
}

export const run = async (ids: readonly string[], options: Options): Promise<number> => {
  const wishes: AmendOptions = {
    ...given('priority', options.priority, integer),
    ...given('at', options.at, instantText),
    ...given('delay', options.delay),
    ...given('ttl', options.ttl),
    ...given('expiresAt', options.expiresAt, (text) => (text.toLowerCase() === 'none' ? null : instantText(text))),
    ...(options.input === undefined ? null : { input: await inputValue(options.input) }),
    ...given('group', options.group, (text) => (text.toLowerCase() === 'none' ? null : text)),
    ...given('tags', options.tag, tags),
  }
  return eachTask(ids, options, {
    move: (client, id) => client.amend(id, wishes),
    describe: ({ status, priority, availableAt }) =>
      `${status} (priority: ${priority}, available_at: ${new Date(availableAt).toISOString()})`,
  })
}
