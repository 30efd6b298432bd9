/** The length with which a lease was claimed, so that a renewal by token alone keeps it. Null: claimed by an earlier release. */
export const LEASE_TTL = 'alter table holdfast_task add column lease_ttl integer;'
