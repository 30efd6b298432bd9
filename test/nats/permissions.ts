/** The permissions of docs/stores/nats.md as they stand there: what is tested is what is pasted. */
import { readFileSync } from 'node:fs'

const page = readFileSync(new URL('../../docs/stores/nats.md', import.meta.url), 'utf8')

export type Role = 'admin' | 'worker' | 'producer' | 'observer'

/** The block of a user under `<!-- permissions: role -->`, for a bucket of another name, or without one line. */
export const permissionsOf = (role: Role, { bucket = 'jobs', without = '' } = {}): string => {
  const [, text] = new RegExp(`<!-- permissions: ${role} -->\\s*\`\`\`\\n(.*?)\`\`\``, 's').exec(page) ?? []
  if (text === undefined) throw new Error(`docs/stores/nats.md has no permissions for a ${role}`)
  return text
    .replaceAll('jobs', bucket)
    .split('\n')
    .filter((line) => without === '' || !line.includes(without))
    .join('\n')
}

/** A server's users, each with the name of its role as password. */
export const usersOf = (users: Readonly<Record<string, string>>): string =>
  `authorization { users: [\n${Object.entries(users)
    .map(([user, permissions]) => `{ user: ${user}, password: ${user}, ${permissions} }`)
    .join('\n')}\n] }`
