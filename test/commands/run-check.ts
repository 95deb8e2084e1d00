import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { checkCommand } from '../../src/commands/check.ts'
import { temporaryDirectory } from '../support/certificate.ts'

/** Runs `postern check` in front of a device: its exit code, and what it prints. */
export async function runCheck(
  url: string,
  set: readonly string[],
  options: { readonly uploads?: string; readonly pages?: readonly string[] } = {},
): Promise<{ readonly code: number; readonly printed: string }> {
  const directory = temporaryDirectory()
  const password = join(directory, 'password')
  writeFileSync(password, 'hunter2\n', { mode: 0o600 })
  const stdout = new PassThrough()
  const printed = text(stdout)
  const addresses = ['listen', 'admin'].map((listener) => `${listener}.address=127.0.0.1:0`)
  const sets = [`upstream.url=${url}`, `password.file=${password}`, 'listen.tls=off', ...addresses]
  const io = { stdout, stderr: new PassThrough(), env: {} }
  const all = [...sets, `state_dir=${directory}`, ...set]
  const code = await checkCommand({ ...options, set: all }, io).finally(() => stdout.end())
  return { code, printed: await printed }
}
