import { stat } from 'node:fs/promises'
import { exposureOf } from '../config/unsafe.ts'
import { shellWord } from '../system/text.ts'

/** A warning if users that do not need a file with a secret can read or replace it; otherwise undefined. `flag` names the file. */
export async function exposureWarning(flag: string, file: string): Promise<string | undefined> {
  const reason = exposureOf((await stat(file)).mode)
  return reason === '' ? undefined : `${flag}: ${file}: ${reason}; chmod 0600 ${shellWord(file)}`
}
