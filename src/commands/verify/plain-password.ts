import { stat } from 'node:fs/promises'
import { exposureOf } from '../../config/secrets.ts'
import { readOnlyLine } from '../../password/source-file.ts'
import { isHash } from '../../password/stored-line.ts'
import { SetupError } from '../../system/setup-error.ts'

/** The password in a file of one line. Rejects with `SetupError` if there is no file, or it holds anything else. */
export async function readPlainPassword(file: string | undefined): Promise<string> {
  if (file === undefined) {
    throw new SetupError('--password-file is missing: name a file with one line, the password of the device')
  }
  if (file === '') throw new SetupError('--password-file: the name of the file is empty')
  const line = await readOnlyLine(file)
  const fault = line.kind === 'unusable' ? line.reason : faultOf(line.text)
  if (line.kind === 'unusable' || fault !== undefined)
    throw new SetupError(`${file}: ${fault}`, { key: '--password-file' })
  return line.text
}

function faultOf(line: string): string | undefined {
  if (line === '') return 'it is empty, and an empty password is never accepted'
  if (line.includes('\0')) return 'it contains a NUL byte'
  return isHash(line) ? 'it holds a hash, and verify has to send the password itself' : undefined
}

/** A warning if users that do not need the file can read or replace it; otherwise undefined. */
export async function exposureWarning(file: string): Promise<string | undefined> {
  const reason = exposureOf((await stat(file)).mode)
  return reason === '' ? undefined : `--password-file: ${file}: ${reason}; chmod 0600 ${file}`
}
