/** Answers of the simulated S3 as text: no XML library, so that it costs little beside what is measured. */
import type { Bucket, ListPage } from './bucket.ts'

export interface Answer {
  readonly status: number
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string | Buffer
}

const XML = '<?xml version="1.0" encoding="UTF-8"?>'

export const escaped = (text: string): string =>
  /[&<>]/.test(text) ? text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;') : text

export const unescaped = (text: string): string =>
  text.includes('&')
    ? text.replaceAll('&lt;', '<').replaceAll('&gt;', '>').replaceAll('&quot;', '"').replaceAll('&amp;', '&')
    : text

export const xml = (body: string): Answer => ({
  status: 200,
  headers: { 'content-type': 'application/xml' },
  body: XML + body,
})

export const refusal = (status: number, code: string): Answer => ({
  status,
  headers: { 'content-type': 'application/xml' },
  body: `${XML}<Error><Code>${code}</Code><Message>${code}, by the simulated S3</Message></Error>`,
})

export const listing = (bucket: Bucket, { keys, prefixes, next }: ListPage): Answer => {
  let body = `<ListBucketResult><IsTruncated>${next !== null}</IsTruncated><KeyCount>${keys.length + prefixes.length}</KeyCount>`
  if (next !== null) body += `<NextContinuationToken>${Buffer.from(next).toString('hex')}</NextContinuationToken>`
  for (const key of keys) {
    const { etag, writtenAt, body: content } = bucket.objects.get(key)!
    // AWS tells the second.
    const at = new Date(Math.floor(writtenAt / 1_000) * 1_000).toISOString()
    body += `<Contents><Key>${escaped(key)}</Key><LastModified>${at}</LastModified><ETag>${etag}</ETag><Size>${content.length}</Size></Contents>`
  }
  for (const prefix of prefixes) body += `<CommonPrefixes><Prefix>${escaped(prefix)}</Prefix></CommonPrefixes>`
  return xml(`${body}</ListBucketResult>`)
}
