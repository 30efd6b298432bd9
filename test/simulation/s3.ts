/** A server of the S3 protocol in memory, and the driver with which the real store speaks to it: conditional writes, pages, refusals. */
import { createHash } from 'node:crypto'
import { idOfTaskKey, TASKS } from '../../src/store/kv/records/names.ts'
import { violations } from '../kv/invariants.ts'
import type { Host } from './host.ts'
import type { StoreParts } from './profiles.ts'
import type { Fault } from './settings.ts'
import type { SimulatedStore } from './simulated-store.ts'
import { SortedKeys } from './sorted-keys.ts'
import { wholeTask } from './whole-task.ts'

const URL = 's3://simulated/holdfast?endpoint=http://simulated&region=nowhere'
const PREFIX = 'holdfast/'

interface Input {
  readonly Key?: string
  readonly Body?: Buffer
  readonly IfMatch?: string
  readonly IfNoneMatch?: string
  readonly Prefix?: string
  readonly MaxKeys?: number
  readonly StartAfter?: string
  readonly ContinuationToken?: string
  readonly Delete?: { readonly Objects: readonly { readonly Key: string }[] }
}

type Kind = 'GetObject' | 'PutObject' | 'DeleteObject' | 'DeleteObjects' | 'ListObjectsV2'

interface Stored {
  readonly text: string
  /** Of the content, as on real servers: equal contents have equal etags. */
  readonly etag: string
  readonly writtenAt: number
}

/** An error as the SDK throws it. */
const refusal = (status: number, name: string): Error =>
  Object.assign(new Error(name), { name, $metadata: { httpStatusCode: status } })

type Next = (args: { readonly request: object }) => Promise<Reply>
interface Reply {
  readonly output: unknown
  readonly response: { readonly headers: Readonly<Record<string, string>> }
}

type Parts = Pick<StoreParts, 'settings' | 'wire' | 'kernel' | 'machine' | 'marks'> & {
  readonly checker: Pick<StoreParts['checker'], 'saw'>
  /** Never fewer keys than asked for. Default: in half of the seeds. */
  readonly hasWholePages?: boolean
}

export const s3 = ({
  settings,
  wire,
  checker,
  kernel,
  machine,
  marks,
  hasWholePages = false,
}: Parts): SimulatedStore => {
  const objects = new Map<string, Stored>()
  const keys = new SortedKeys()
  const random = kernel.random('s3')
  const hasShortPages = random.chance(0.5) && !hasWholePages

  const observe = (key: string, text: string | null): void => {
    if (!key.startsWith(PREFIX + TASKS)) return
    const name = key.slice(PREFIX.length)
    checker.saw(idOfTaskKey(name), text === null ? null : wholeTask(name, text, valueUnder), machine.wall())
  }
  const valueUnder = (key: string): string | undefined => objects.get(PREFIX + key)?.text

  const put = ({ Key: key = '', Body: body, IfMatch: match, IfNoneMatch: none }: Input): unknown => {
    const found = objects.get(key)
    if (none === '*' && found !== undefined) throw refusal(412, 'PreconditionFailed')
    if (match !== undefined && found === undefined) throw refusal(404, 'NoSuchKey')
    if (match !== undefined && found!.etag !== match) throw refusal(412, 'PreconditionFailed')
    const text = body!.toString()
    const etag = `"${createHash('md5').update(text).digest('hex')}"`
    objects.set(key, { text, etag, writtenAt: machine.wall() })
    keys.add(key)
    observe(key, text)
    return { ETag: etag }
  }
  const get = ({ Key: key = '', IfNoneMatch: none }: Input): unknown => {
    const found = objects.get(key)
    if (found === undefined) throw refusal(404, 'NoSuchKey')
    if (found.etag === none) throw refusal(304, 'NotModified')
    const bytes = Buffer.from(found.text)
    return { ETag: found.etag, ContentLength: bytes.length, Body: { transformToByteArray: async () => bytes } }
  }
  const remove = (key: string): void => {
    if (!objects.delete(key)) return
    keys.delete(key)
    observe(key, null)
  }
  const list = ({
    Prefix: prefix = '',
    MaxKeys: most = 1_000,
    StartAfter: after,
    ContinuationToken: token,
  }: Input): unknown => {
    const limit = hasShortPages ? Math.min(most, 1 + random.below(20)) : most
    const page = keys.under(prefix, token ?? after, limit + 1)
    const shown = page.slice(0, limit)
    const isCut = page.length > limit
    if (isCut && limit < most) marks.hit('a short page of a list')
    return {
      Contents: shown.map((key) => ({
        Key: key,
        LastModified: new Date(Math.floor(objects.get(key)!.writtenAt / 1_000) * 1_000),
      })),
      IsTruncated: isCut,
      ...(isCut ? { NextContinuationToken: shown.at(-1)! } : null),
    }
  }
  const answer = (kind: Kind, input: Input): unknown => {
    switch (kind) {
      case 'PutObject':
        return put(input)
      case 'GetObject':
        return get(input)
      case 'ListObjectsV2':
        return list(input)
      case 'DeleteObject':
        remove(input.Key!)
        return {}
      case 'DeleteObjects':
        for (const { Key: key } of input.Delete!.Objects) remove(key)
        return {}
    }
  }

  const headers = (): { readonly headers: Readonly<Record<string, string>> } => ({
    headers: { date: new Date(machine.wall()).toUTCString() },
  })
  const METHODS: Readonly<Record<Kind, string>> = {
    PutObject: 'PUT',
    GetObject: 'GET',
    ListObjectsV2: 'GET',
    DeleteObject: 'DELETE',
    DeleteObjects: 'POST',
  }

  const send = (host: Host, kind: Kind, input: Input): Promise<Reply> => {
    const { Body: body, ...rest } = input
    const answered = (error: Error): Error => Object.assign(error, { $response: headers() })
    return wire.call({
      host,
      name: kind,
      what: `${JSON.stringify(rest)} ${body?.toString() ?? ''}`,
      failed: (why) => Object.assign(new Error(why), { name: why === 'timeout' ? 'TimeoutError' : 'ECONNRESET' }),
      async apply() {
        try {
          return { output: answer(kind, input), response: headers() }
        } catch (error) {
          throw answered(error as Error)
        }
      },
      refusals: [
        ['throttle', () => answered(refusal(503, 'SlowDown'))],
        ...(kind === 'PutObject'
          ? [['conflict-reply', () => answered(refusal(409, 'ConditionalRequestConflict'))] as [Fault, () => unknown]]
          : []),
      ],
    })
  }

  const driverFor = (host: Host): object => {
    class Client {
      readonly config = {
        region: async () => 'nowhere',
        signer: async () => ({}),
        credentials: async () => ({ accessKeyId: 'simulated', secretAccessKey: 'simulated' }),
      }
      readonly #outer: ((next: Next) => Next)[] = []
      readonly middlewareStack = {
        add: (layer: (next: Next) => Next, { step }: { readonly step: string }): void => {
          if (step === 'build') this.#outer.unshift(layer)
          else this.#outer.push(layer)
        },
      }
      async send(command: { readonly kind: Kind; readonly input: Input }): Promise<unknown> {
        const { kind, input } = command
        const query = kind === 'ListObjectsV2' ? { 'list-type': '2' } : {}
        const sent: Next = () => send(host, kind, input)
        const run = this.#outer.reduceRight((next, layer) => layer(next), sent)
        return (await run({ request: { method: METHODS[kind], query } })).output
      }
      destroy(): void {}
    }
    const command = (kind: Kind): unknown =>
      class {
        readonly kind = kind
        readonly input: Input
        constructor(input: Input) {
          this.input = input
        }
      }
    const commands = (Object.keys(METHODS) as Kind[]).map((kind) => [`${kind}Command`, command(kind)])
    return { S3Client: Client, ...Object.fromEntries(commands) }
  }

  const open = async (host: Host, create = false) => {
    host.provides.set('@aws-sdk/client-s3', driverFor(host))
    return host.holdfast.openS3(URL, { create, requestTimeout: { milliseconds: settings.deadline } })
  }

  return {
    prepare: async (host) => {
      await (await open(host, true)).close()
    },
    open,
    now: () => machine.wall(),
    recoversWithin: ({ leaseTtl }) => 2 * leaseTtl + 150_000,
    async all() {
      return [...objects].flatMap(([key, { text }]) => {
        if (!key.startsWith(PREFIX + TASKS)) return []
        const task = wholeTask(key.slice(PREFIX.length), text, valueUnder)
        return task === null ? [] : [task]
      })
    },
    broken: async () => {
      const entries = [...objects].map(([key, { text, etag }]) => [
        key.slice(PREFIX.length),
        { value: text, mark: etag },
      ])
      // A coalesce key passes on from task to task.
      return violations({ entries: new Map(entries as never) } as never).filter((what) => !what.includes('coalesce:'))
    },
  }
}
