/** The facts about a bucket that `doctor` reports: conditional writes, lifecycle rules, versioning. */
import type { LifecycleRule } from '@aws-sdk/client-s3'
import type { Fact } from '../../core/observe/diagnosis.ts'
import type { S3Place } from './address.ts'
import type { Driver } from './client.ts'
import { nameOf, statusOf } from './errors.ts'
import type { S3KeyValue } from './key-value.ts'
import { Disproof } from './proof.ts'
import type { ProofRecord } from './proof-record.ts'
import { missingRights, rightsFact } from './rights.ts'

export const examine = async (driver: Driver, kv: S3KeyValue, place: S3Place, proof: ProofRecord): Promise<Fact[]> => {
  const missing = await missingRights(kv)
  const { facts, optional } = await settings(driver, kv, place)
  // The proof needs these permissions.
  const proved = missing.some((right) => PROVING.includes(right)) ? [] : [await conditions(proof)]
  return [...proved, rightsFact(missing, optional), ...facts]
}

const PROVING: readonly string[] = ['s3:PutObject', 's3:GetObject', 's3:ListBucket']

const conditions = async (proof: ProofRecord): Promise<Fact> => {
  try {
    await proof.renew()
    return {
      check: 'conditional-writes',
      areAtomic: true,
      found: 'of many writers under one condition exactly one wins, and lists are in order',
    }
  } catch (error) {
    if (!(error instanceof Disproof)) throw error
    return { check: 'conditional-writes', areAtomic: false, found: error.message }
  }
}

/** What the bucket's settings say, and the permissions that were missing to read the rest. */
const settings = async (
  driver: Driver,
  { client }: S3KeyValue,
  place: S3Place,
): Promise<{ readonly facts: readonly Fact[]; readonly optional: readonly string[] }> => {
  const bucket = { Bucket: place.bucket }
  const facts: Fact[] = []
  const optional: string[] = []
  const read = async <T>(right: string, what: string, request: () => Promise<T>): Promise<T | null> => {
    try {
      return await request()
    } catch (error) {
      if (statusOf(error) === 403) optional.push(right)
      else facts.push({ check: 'reading', what, error: nameOf(error) })
      return null
    }
  }
  const rules = await read('s3:GetLifecycleConfiguration', "the bucket's lifecycle rules", () =>
    lifecycleRules(() => client.send(new driver.GetBucketLifecycleConfigurationCommand(bucket))),
  )
  if (rules !== null) facts.push(deletions(rules, place))
  const versioning = await read('s3:GetBucketVersioning', "the bucket's versioning", () =>
    client.send(new driver.GetBucketVersioningCommand(bucket)),
  )
  if (versioning !== null)
    facts.push({
      check: 'versions',
      areKept: versioning.Status === 'Enabled',
      areExpired: (rules ?? []).some(
        (rule) => appliesTo(rule, place) && rule.NoncurrentVersionExpiration !== undefined,
      ),
      how: 'Suspend versioning, or add a lifecycle rule with NoncurrentVersionExpiration and ExpiredObjectDeleteMarker.',
    })
  return { facts, optional }
}

const lifecycleRules = async (
  read: () => Promise<{ readonly Rules?: LifecycleRule[] | undefined }>,
): Promise<readonly LifecycleRule[]> => {
  try {
    return ((await read()).Rules ?? []).filter(({ Status: status }) => status === 'Enabled')
  } catch (error) {
    if (statusOf(error) === 404 && nameOf(error) !== 'NoSuchBucket') return []
    throw error
  }
}

const prefixOf = ({ Filter: filter, Prefix: prefix }: LifecycleRule): string =>
  filter?.Prefix ?? filter?.And?.Prefix ?? prefix ?? ''

/** Whether the rule applies to keys under this prefix. */
const appliesTo = (rule: LifecycleRule, { prefix }: S3Place): boolean =>
  prefixOf(rule).startsWith(prefix) || prefix.startsWith(prefixOf(rule))

const expires = ({ Expiration: expiration }: LifecycleRule): boolean =>
  expiration?.Days !== undefined || expiration?.Date !== undefined

/** Archived objects cannot be read until they are restored. */
const ARCHIVES: readonly (string | undefined)[] = ['GLACIER', 'DEEP_ARCHIVE']

const archives = ({ Transitions: transitions = [] }: LifecycleRule): boolean =>
  transitions.some(({ StorageClass: storage }) => ARCHIVES.includes(storage))

/** A rule is harmful even with many days: a task may wait longer, and an idempotency key must not vanish before its task. */
const deletions = (rules: readonly LifecycleRule[], place: S3Place): Fact => {
  const deleting = rules.filter((rule) => appliesTo(rule, place) && (expires(rule) || archives(rule)))
  const names = deleting.map((rule) => `'${rule.ID ?? prefixOf(rule)}'`).join(', ')
  return {
    check: 'durability',
    setting: 'deletion or archiving by lifecycle rules',
    value: deleting.length === 0 ? 'none' : names,
    wanted: 'none',
    how: `Remove the expiration or transition of ${names}, or give it another prefix; holdfast prune and retention remove what has ended.`,
  }
}
