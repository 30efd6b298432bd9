/** argv to command to exit code. Loads nothing that the verb does not need: a prompt should come back at once. */
import { CommanderError } from 'commander'
import { makeProgram } from './program.ts'

const main = async (argv: readonly string[]): Promise<void> => {
  // Until a verb says otherwise: a process that ends too soon must not look like success.
  process.exitCode = 1
  // `holdfast list | head` is not an error.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1))
  try {
    // A shell asks what could come next: see completions.
    if (argv[2] === 'complete' && argv[3] === '--') {
      const { complete } = await import('./completing.ts')
      complete(argv.slice(4))
      process.exitCode = 0
      return
    }
    await makeProgram((code) => (process.exitCode = code)).parseAsync(argv.length > 2 ? argv : [...argv, '--help'])
  } catch (thrown) {
    if (thrown instanceof CommanderError && thrown.exitCode === 0) {
      process.exitCode = 0
      return
    }
    const { report } = await import('./errors.ts')
    const error = thrown instanceof CommanderError ? await usageError(thrown) : thrown
    process.exitCode = report(error, argv.includes('--json'))
  }
}

/** What the parser refused, as one of ours: the same words, the same exit code as any other bad input. */
const usageError = async ({ code, message }: CommanderError): Promise<Error> => {
  const { HoldfastError } = await import('../index.ts')
  const told = code === 'commander.help' ? 'name a verb' : message.replace(/^error: /, '').replaceAll('\n', ' ')
  return new HoldfastError('INVALID_OPTION', told)
}

await main(process.argv)
