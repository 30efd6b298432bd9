/** An S3 of our own in another process: in memory, with a latency, and with what other vendors do differently. */
import { join } from 'node:path'
import { killed, spawn, tied } from '../processes.ts'
import { CONTROL, type CountRow, type Kind, type SimulatedS3Options } from './options.ts'

export type Counts = Readonly<Record<Kind, number>>

export interface SimulatedS3 {
  readonly endpoint: string
  readonly pid: number
  /** The address of a store in a bucket that nobody else has, with the credentials to use. */
  fresh(by?: string): { readonly url: string; readonly bucket: string; readonly credentials: typeof CREDENTIALS }
  /** What was asked since the last reset. */
  rows(): Promise<readonly CountRow[]>
  /** Forgets what was counted, and answers with it. */
  reset(): Promise<readonly CountRow[]>
  /** What is kept in a bucket, by key: read beside the S3 protocol, not counted. */
  objects(bucket: string, prefix?: string): Promise<Readonly<Record<string, string>>>
  change(options: SimulatedS3Options): Promise<void>
  remove(): Promise<void>
}

const CREDENTIALS = { accessKeyId: 'simulated', secretAccessKey: 'simulated-secret' }

/** By kind, of the rows that `isMeant`. */
export const countsOf = (rows: readonly CountRow[], isMeant: (row: CountRow) => boolean = () => true): Counts => {
  const counts = { PUT: 0, GET: 0, LIST: 0, DELETE: 0 }
  for (const row of rows) if (isMeant(row)) counts[row.kind] += row.count
  return counts
}

/** At the prices of AWS: $5 a million for PUT and LIST, $0.40 for GET, nothing for DELETE. */
export const dollarsOf = ({ PUT, LIST, GET }: Counts): number => ((PUT + LIST) * 5 + GET * 0.4) / 1_000_000

let buckets = 0

export const startSimulatedS3 = async (options: SimulatedS3Options = {}): Promise<SimulatedS3> => {
  const program = join(import.meta.dirname, 'main.ts')
  const child = spawn(...tied(process.execPath, [program, JSON.stringify(options)]), {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const endpoint = await new Promise<string>((done, failed) => {
    child.once('error', failed)
    child.once('exit', (code) => failed(new Error(`the simulated S3 ended with ${code}`)))
    let said = ''
    child.stdout!.on('data', (data: Buffer) => {
      said += data.toString()
      const found = /listening on (\S+)\n/.exec(said)
      if (found !== null) done(found[1]!)
    })
  })
  const control = async <T = readonly CountRow[]>(path: string, body?: string): Promise<T> => {
    const answer = await fetch(endpoint + CONTROL + path, body === undefined ? {} : { method: 'POST', body })
    return (await answer.json()) as T
  }
  return {
    endpoint,
    pid: child.pid!,
    fresh(by = CREDENTIALS.accessKeyId) {
      const bucket = `bucket-${process.pid}-${++buckets}`
      return { url: `s3://${bucket}?endpoint=${endpoint}`, bucket, credentials: { ...CREDENTIALS, accessKeyId: by } }
    },
    rows: () => control('counts'),
    reset: () => control('reset'),
    objects: (bucket, prefix = '') => control(`objects?${bucket}?${encodeURIComponent(prefix)}`),
    change: async (changed) => void (await control('options', JSON.stringify(changed))),
    remove: () => killed(child),
  }
}
