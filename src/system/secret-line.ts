import { reasonOf } from './node-permission.ts'
import { SetupError } from './setup-error.ts'
import { readWholeFile } from './whole-file.ts'

/**
 * Reads a file with one line of text in UTF-8, such as a password, and returns it without its line end. Rejects with a `SetupError`
 * that names the configuration key and never quotes the text.
 */
export async function readSecretLine(key: string, path: string): Promise<string> {
  const bytes = await readWholeFile(path).catch((error: Error) => {
    throw new SetupError(`${key}: cannot read ${path}: ${reasonOf(error)}`)
  })
  const text = bytes
    .toString('utf8')
    .replace(/^\ufeff/, '')
    .replace(/\r?\n$/, '')
  if (text === '' || [...text].some((each) => each < ' ' || each === '\x7f' || each === '\ufffd')) {
    throw new SetupError(`${key}: ${path} must hold one line of text in UTF-8`)
  }
  return text
}
