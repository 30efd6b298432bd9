/** Durable steps of handlers in threads and processes of their own: the worker keeps them, the child asks by message. */
import { expect, it, onTestFinished } from 'vitest'
import { type Client, connect, type IsolatedHandler, type Logger, silentLogger, type Task } from '../../src/index.ts'
import { cleanUp, until } from './processes.ts'

cleanUp()

const module = new URL('./children/isolated-handlers.ts', import.meta.url)

const begin = async (isolate: IsolatedHandler['isolate'], ...exports: readonly string[]) => {
  const lines: string[] = []
  const logger: Logger = { ...silentLogger, warn: (line) => void lines.push(line) }
  const client = await connect('memory:', { logger })
  onTestFinished(() => client.close())
  const worker = client.worker({ pollInterval: '50ms' })
  for (const name of exports) worker.handle(name, { module, export: name, isolate })
  worker.start()
  return { client, lines }
}

const ended = async (client: Client, id: string): Promise<Task> => {
  await client.wait(id).catch(() => {})
  return client.get(id)
}

const KINDS: readonly IsolatedHandler['isolate'][] = ['thread', 'process']

it.each(KINDS)('in a %s: steps, sleeps and waits are those of a handler in the worker', async (kind) => {
  const { client, lines } = await begin(kind, 'durable')
  const { id } = await client.submit('durable', null)
  await until('it waits', async () => (await client.get(id)).parked?.signal === 'go')
  await client.signal(id, 'go', 7)
  const { output, attempts, retryCount } = await ended(client, id)
  expect(output).toEqual({
    first: { key: `${id}:first`, attempt: 1 },
    sent: 7,
    bytes: [0, 255],
    names: ['first done', 'nap done', 'go done', 'bytes done'],
    last: 3,
  })
  expect([attempts, retryCount, lines]).toEqual([3, 0, []])
})

it.each(KINDS)('in a %s: errors of steps keep their names, codes and messages', async (kind) => {
  const { client } = await begin(kind, 'misused')
  const { id } = await client.submit('misused', null, { delay: '1h' })
  await client.signal(id, 'bad', 11)
  await client.runNow(id)
  expect((await ended(client, id)).output).toEqual([
    'STEP_REPEATED',
    'INVALID_OPTION',
    'STEP_INVALID',
    'STEP_INVALID',
    'INVALID_OPTION',
    "SignalTimeout: no signal came for step 'late' before its timeout",
    expect.stringMatching(
      /^SignalInvalid: the signal 'bad' for step 'bad' was refused: (?!the signal).*is more than ten$/,
    ),
  ])
})

it.each(KINDS)('in a %s: a handler that swallows Parked counts for nothing, and is logged', async (kind) => {
  const { client, lines } = await begin(kind, 'swallowsPark')
  const { id } = await client.submit('swallowsPark', null)
  expect(await ended(client, id)).toMatchObject({ status: 'completed', output: 'run 2', attempts: 2 })
  expect(lines).toEqual([expect.stringContaining('Do not catch Parked')])
})

it.each(KINDS)('in a %s: a child that dies after a step has it in its next run', async (kind) => {
  const { client } = await begin(kind, 'diesAfterStep')
  const { id } = await client.submit('diesAfterStep', null)
  const { output, retryCount, steps } = await ended(client, id)
  expect(output).toEqual({ recorded: steps[0]!.value, attempt: 2 })
  expect(retryCount).toBe(1)
})
