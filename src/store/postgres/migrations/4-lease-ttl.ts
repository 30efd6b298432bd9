/** The length with which a lease was claimed, so that a renewal by token alone keeps it. Null: claimed by an earlier release. */
import { claimFunction } from './3-claim.ts'

export const leaseTtl = (schema: string): string => `
  alter table ${schema}.task add column lease_ttl bigint;
  ${claimFunction(schema, { create: 'create or replace function', also: ' lease_ttl = ttl,' })}
  `
