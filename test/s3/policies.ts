/** The policies of docs/stores/s3.md as they stand there: what is tested is what is pasted. */
import { readFileSync } from 'node:fs'
import type { Action } from '../servers/simulated-s3/options.ts'

interface Statement {
  readonly Action: readonly Action[]
  readonly Resource: string
}

interface Policy {
  readonly Statement: readonly Statement[]
}

type Role = 'worker' | 'producer' | 'observer'

const page = readFileSync(new URL('../../docs/stores/s3.md', import.meta.url), 'utf8')

/** The statements under `<!-- policy: role -->`. */
const statementsOf = (role: Role): readonly Statement[] => {
  const [, text] = new RegExp(`<!-- policy: ${role} -->\\s*\`\`\`json\\n(.*?)\`\`\``, 's').exec(page) ?? []
  if (text === undefined) throw new Error(`docs/stores/s3.md has no policy for a ${role}`)
  return (JSON.parse(text) as Policy).Statement
}

/** Every action that a policy allows. */
export const policyOf = (role: Role): readonly Action[] => statementsOf(role).flatMap(({ Action: actions }) => actions)

/** The same policies as one of a bucket, each for a user of the name of its role. */
export const bucketPolicy = (bucket: string, roles: readonly Role[]): string =>
  JSON.stringify({
    Version: '2012-10-17',
    Statement: roles.flatMap((role) =>
      statementsOf(role).map((statement) => ({
        ...statement,
        Principal: { AWS: [`arn:aws:iam:::user/${role}`] },
        Resource: statement.Resource.replace('my-bucket', bucket),
      })),
    ),
  })
