/** How the simulated S3 behaves. Every field may be changed while it runs. */

/** An action as an IAM policy names it, for the refusals. */
export type Action =
  | 's3:GetObject'
  | 's3:PutObject'
  | 's3:DeleteObject'
  | 's3:ListBucket'
  | 's3:GetBucketVersioning'
  | 's3:GetLifecycleConfiguration'

/** An answer that replaces the usual one, for the requests that match. */
export interface Fault {
  /** PUT, GET, DELETE, LIST; left out: any. */
  readonly kind?: string
  /** The key contains this text; left out: any. */
  readonly key?: string
  /** How many requests meet it; left out: all. */
  readonly times?: number
  /** `lost-reply`: carried out, then the connection is closed without an answer. `hang`: neither. */
  readonly what: 'status' | 'lost-reply' | 'hang'
  readonly status?: number
  readonly code?: string
}

export interface SimulatedS3Options {
  /** Milliseconds from request to answer. Requests never wait for each other. Default 30. */
  readonly latency?: number
  /** Writes to one key beyond this rate are answered with 429, as by Cloudflare R2 (1). null: no limit. */
  readonly writesPerSecondAndKey?: number | null
  /** Lists come in an order of their own, as from S3 directory buckets. */
  readonly listsUnordered?: boolean
  /** Conditional writes are answered with 501. */
  readonly conditions?: 'supported' | 'unsupported'
  /** Answered with 403 whoever asks. */
  readonly refused?: readonly Action[]
  /** By access key id: the only actions that this client may use. Others may use all. */
  readonly rights?: Readonly<Record<string, readonly Action[]>>
  readonly faults?: readonly Fault[]
  /** Most keys of a page, whatever is asked for. Default 1,000. */
  readonly pageSize?: number
  /** Its clock minus the machine's, in milliseconds. */
  readonly clockOffset?: number
  /** null: every bucket exists. */
  readonly buckets?: readonly string[] | null
  readonly versioning?: 'Enabled' | 'Suspended' | null
  /** The XML of the bucket's lifecycle configuration. */
  readonly lifecycle?: string | null
}

export const DEFAULTS: Required<SimulatedS3Options> = {
  latency: 30,
  writesPerSecondAndKey: null,
  listsUnordered: false,
  conditions: 'supported',
  refused: [],
  rights: {},
  faults: [],
  pageSize: 1_000,
  clockOffset: 0,
  buckets: null,
  versioning: null,
  lifecycle: null,
}

/** As they are charged for: deletes of many keys are deletes, a HEAD is a GET. */
export type Kind = 'PUT' | 'GET' | 'LIST' | 'DELETE'

/** How often something was asked for since the last reset. */
export interface CountRow {
  readonly bucket: string
  /** The access key id of the client. */
  readonly by: string
  readonly kind: Kind
  readonly status: number
  /** The key's first part: `tasks`, `ready`; of a list, its prefix's. */
  readonly folder: string
  readonly count: number
}

/** Its own requests, under a name that no bucket has. */
export const CONTROL = '/-/'
