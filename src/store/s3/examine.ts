/** What `doctor` wants to know about a bucket: conditions, rules that delete, versions that pile up. Decides nothing. */
import type { LifecycleRule } from '@aws-sdk/client-s3'
import type { Fact } from '../../core/diagnosis.ts'
import { isHoldfastError } from '../../core/errors.ts'
import type { S3Place } from './address.ts'
import type { Driver } from './client.ts'
import { nameOf, statusOf } from './errors.ts'
import type { S3KeyValue } from './key-value.ts'
import { proveConditions } from './proof.ts'

export const examine = async (driver: Driver, kv: S3KeyValue, place: S3Place): Promise<Fact[]> => {
  const facts = [await conditions(kv)]
  const bucket = { Bucket: place.bucket }
  try {
    const rules = await lifecycleRules(() => kv.client.send(new driver.GetBucketLifecycleConfigurationCommand(bucket)))
    facts.push(deletions(rules, place))
    const { Status: status } = await kv.client.send(new driver.GetBucketVersioningCommand(bucket))
    facts.push({
      check: 'versions',
      areKept: status === 'Enabled',
      areExpired: rules.some((rule) => isOver(rule, place) && rule.NoncurrentVersionExpiration !== undefined),
    })
  } catch (error) {
    facts.push({ check: 'reading', what: "the bucket's lifecycle rules and versioning", error: nameOf(error) })
  }
  return facts
}

const conditions = async (kv: S3KeyValue): Promise<Fact> => {
  try {
    await proveConditions(kv)
    return {
      check: 'conditional-writes',
      areAtomic: true,
      found: 'of many writers under one condition exactly one wins',
    }
  } catch (error) {
    if (!isHoldfastError(error, 'INVALID_OPTION')) throw error
    return { check: 'conditional-writes', areAtomic: false, found: error.message }
  }
}

const lifecycleRules = async (
  ask: () => Promise<{ readonly Rules?: LifecycleRule[] | undefined }>,
): Promise<readonly LifecycleRule[]> => {
  try {
    return ((await ask()).Rules ?? []).filter(({ Status: status }) => status === 'Enabled')
  } catch (error) {
    if (statusOf(error) === 404 && nameOf(error) !== 'NoSuchBucket') return []
    throw error
  }
}

const prefixOf = ({ Filter: filter, Prefix: prefix }: LifecycleRule): string =>
  filter?.Prefix ?? filter?.And?.Prefix ?? prefix ?? ''

/** Whether it touches what is kept under our prefix. */
const isOver = (rule: LifecycleRule, { prefix }: S3Place): boolean =>
  prefixOf(rule).startsWith(prefix) || prefix.startsWith(prefixOf(rule))

/** Days alone do not make a rule harmless: a task may wait for longer, and a key must not vanish under its task. */
const deletions = (rules: readonly LifecycleRule[], place: S3Place): Fact => {
  const deleting = rules.filter(
    (rule) => isOver(rule, place) && (rule.Expiration?.Days !== undefined || rule.Expiration?.Date !== undefined),
  )
  const told = deleting.map((rule) => `'${rule.ID ?? prefixOf(rule)}'`).join(', ')
  return {
    check: 'durability',
    setting: 'deletion by lifecycle rules',
    value: deleting.length === 0 ? 'none' : told,
    wanted: 'none',
    how: `Remove the expiration of ${told}, or give it another prefix; holdfast prune and retention remove what has ended.`,
  }
}
