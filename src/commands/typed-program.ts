import { basename } from 'node:path'
import { shellWord } from '../system/text.ts'

/** The facts that show how a person started the process. */
interface Start {
  /** The first word of the command line, as it was typed. */
  readonly argv0: string
  /** The script that Node runs; undefined in the single executable. */
  readonly script: string | undefined
  readonly env: Readonly<Record<string, string | undefined>>
}

/**
 * The words that start this program where it runs, for commands to copy: `npm run -s postern --` in a checkout, `./postern` for an
 * executable that is not installed, `npx postern` in an npm project, otherwise `postern`.
 */
export function typedProgram({ argv0, script, env }: Start): string {
  if (script === undefined) return shellWord(argv0)
  if (/[\\/]src[\\/]main\.ts$/.test(script)) return 'npm run -s postern --'
  if (env.npm_command === 'exec') return 'npx postern'
  const isInstalled = ['postern', 'postern.cjs'].includes(basename(script))
  return isInstalled ? 'postern' : `${shellWord(argv0)} ${shellWord(script)}`
}
