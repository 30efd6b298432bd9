/** A small S3 server on a map that can be configured to misbehave. */
import { createHash } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'

export interface StubManners {
  /** Conditions that it ignores. */
  readonly ignores?: readonly ('if-match' | 'if-none-match')[]
  /** Checks first and writes a moment later, so that several writers can win. */
  readonly isSlowToWrite?: boolean
  /** Accepts If-Match on a missing key. */
  readonly writesMissing?: boolean
  /** Like older gateways: compares etags only without their quotes. */
  readonly wantsBareEtags?: boolean
  /** Lists begin with the first key, whatever key they are to start after. */
  readonly ignoresStartAfter?: boolean
  /** Lists do not show the key that was written last. */
  readonly listsLate?: boolean
  /** Deletes of many keys succeed as a request and fail for each key, as on AWS without permission. */
  readonly keepsAll?: boolean
  /** The only access key that it accepts. Default: all. */
  readonly knows?: string
  /** Refuses every write and delete, as AWS does without permission. */
  readonly mayOnlyRead?: boolean
  /** Every reply has this status. */
  readonly status?: number
  readonly code?: string
  readonly message?: string
}

export interface StubServer {
  readonly endpoint: string
  readonly objects: Map<string, { readonly body: string; readonly etag: string }>
  readonly requests: string[]
  /** The access key of each request. */
  readonly signers: string[]
  manners: StubManners
  close(): Promise<void>
}

const bodyOf = async (request: IncomingMessage): Promise<string> => {
  let body = ''
  for await (const chunk of request) body += chunk
  return body
}

const refuse = (response: ServerResponse, status: number, code: string, message = code): void => {
  response.writeHead(status, { 'content-type': 'application/xml' })
  response.end(`<?xml version="1.0"?><Error><Code>${code}</Code><Message>${message}</Message></Error>`)
}

export const startStub = async (manners: StubManners = {}): Promise<StubServer> => {
  const objects = new Map<string, { body: string; etag: string }>()
  const requests: string[] = []
  const signers: string[] = []
  let writes = 0

  const isRefused = (key: string, headers: IncomingMessage['headers']): boolean => {
    const { ignores = [], writesMissing, wantsBareEtags } = stub.manners
    const found = objects.get(key)
    if (headers['if-none-match'] === '*' && !ignores.includes('if-none-match')) return found !== undefined
    const wanted = headers['if-match']
    if (wanted === undefined || ignores.includes('if-match')) return false
    if (found === undefined) return writesMissing !== true
    return wanted !== (wantsBareEtags ? found.etag.replaceAll('"', '') : found.etag)
  }

  const put = async (key: string, request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const body = await bodyOf(request)
    if (isRefused(key, request.headers)) return refuse(response, 412, 'PreconditionFailed')
    if (stub.manners.isSlowToWrite) await new Promise((later) => setTimeout(later, 20))
    const etag = `"${createHash('md5').update(body).digest('hex')}-${++writes}"`
    objects.set(key, { body, etag })
    response.writeHead(200, { etag }).end()
  }

  const list = (url: URL, response: ServerResponse): void => {
    const prefix = url.searchParams.get('prefix') ?? ''
    const { ignoresStartAfter = false, listsLate = false } = stub.manners
    const after = ignoresStartAfter ? '' : (url.searchParams.get('start-after') ?? '')
    const hidden = listsLate ? [...objects.keys()].at(-1) : undefined
    const most = Number(url.searchParams.get('max-keys') ?? 1_000)
    const keys = [...objects.keys()].filter((key) => key.startsWith(prefix) && key > after && key !== hidden).sort()
    keys.length = Math.min(keys.length, most)
    const contents = keys.map((key) => `<Contents><Key>${key}</Key></Contents>`).join('')
    response.writeHead(200, { 'content-type': 'application/xml' })
    response.end(`<ListBucketResult><IsTruncated>false</IsTruncated>${contents}</ListBucketResult>`)
  }

  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const url = new URL(request.url!, 'http://stub')
    const key = decodeURIComponent(url.pathname.split('/').slice(2).join('/'))
    requests.push(`${request.method} ${key}`)
    signers.push(/Credential=([^/]*)/.exec(request.headers.authorization ?? '')?.[1] ?? '')
    const { status, code = 'Refused', message, knows } = stub.manners
    if (status !== undefined) return refuse(response, status, code, message)
    if (knows !== undefined && signers.at(-1) !== knows) return refuse(response, 403, 'InvalidAccessKeyId')
    if (stub.manners.mayOnlyRead && request.method !== 'GET')
      return refuse(response, 403, 'AccessDenied', 'Access Denied')
    if (request.method === 'PUT') return put(key, request, response)
    if (request.method === 'DELETE') {
      objects.delete(key)
      return void response.writeHead(204).end()
    }
    if (request.method === 'POST' && stub.manners.keepsAll) {
      const errors = [...(await bodyOf(request)).matchAll(/<Key>[^<]*<\/Key>/g)].map(
        ([key]) => `<Error>${key}<Code>AccessDenied</Code></Error>`,
      )
      return void response.writeHead(200).end(`<DeleteResult>${errors.join('')}</DeleteResult>`)
    }
    if (request.method === 'POST') {
      for (const [, named] of (await bodyOf(request)).matchAll(/<Key>([^<]*)<\/Key>/g)) objects.delete(named!)
      return void response.writeHead(200).end('<DeleteResult></DeleteResult>')
    }
    if (url.searchParams.has('list-type')) return list(url, response)
    const found = objects.get(key)
    if (found === undefined) return refuse(response, 404, 'NoSuchKey')
    response.writeHead(200, { etag: found.etag }).end(found.body)
  }

  const server = createServer((request, response) => void serve(request, response))
  await new Promise<void>((done) => server.listen(0, '127.0.0.1', done))
  const stub: StubServer = {
    endpoint: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    objects,
    requests,
    signers,
    manners,
    async close() {
      server.closeAllConnections()
      await new Promise((done) => server.close(done))
    },
  }
  return stub
}
