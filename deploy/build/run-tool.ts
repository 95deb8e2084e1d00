import { spawn } from 'node:child_process'
import { once } from 'node:events'

/** The Debian package that has each program. */
const PACKAGES: Readonly<Record<string, string>> = {
  'ssh-keygen': 'openssh-client',
  'apt-ftparchive': 'apt-utils',
  gpg: 'gnupg',
  sha256sum: 'coreutils',
}

/**
 * Runs a program that may ask for a passphrase or a touch on the terminal, and resolves to its output. Throws if it fails, and names the
 * Debian package if it is missing.
 */
export async function runTool(
  program: string,
  args: readonly string[],
  cwd?: string,
  { quiet = false } = {},
): Promise<string> {
  const child = spawn(program, args, { cwd, stdio: ['inherit', 'pipe', quiet ? 'ignore' : 'inherit'] })
  const output: Buffer[] = []
  child.stdout?.on('data', (chunk: Buffer) => output.push(chunk))
  const [code, signal] = await once(child, 'close').catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error
    throw new Error(`${program} is missing: install Debian's package ${PACKAGES[program] ?? program}`)
  })
  if (code !== 0) throw new Error(`${program} ${args[0]} ${args[1]}: ended with ${code ?? signal}`)
  return Buffer.concat(output).toString()
}
