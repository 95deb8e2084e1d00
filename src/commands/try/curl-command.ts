import type { Config } from '../../config/schema.ts'
import { isAmbiguousPath, pathOf } from '../../http/request-path.ts'
import { shellWord } from '../../system/text.ts'
import type { ListenerOrigin } from './listener-origin.ts'

/** The same request by curl, for a POSIX shell. `source`: words that write the field with the token to a pipe. */
export function curlCommand(source: string, { curl, origin }: ListenerOrigin, target: string): string {
  const words = [
    ...curl,
    ...(/[[\]{}]/.test(target) ? ['--globoff'] : []),
    ...(isAmbiguousPath(pathOf(target)) ? ['--path-as-is'] : []),
    ...['-H', '@-', `${origin}${target}`],
  ]
  return `${source} |\n  curl ${words.map(shellWord).join(' ')}`
}

/**
 * Words that write `Authorization` with a token, which so is on no command line: of the file that was named, of `postern issue`, or of a
 * variable where neither can have one.
 *
 * @param issue the command `postern issue` with these words behind it
 */
export function tokenSource(
  tokenFile: string | undefined,
  { password, passwords = [] }: Pick<Config, 'password' | 'passwords'>,
  issue: (words: string) => string,
): string {
  // The token of standard input was used up, and where the device checks passwords no token is issued.
  const isUnknown = tokenFile === '-' || (tokenFile === undefined && password && 'device' in password)
  if (isUnknown) return `printf 'Authorization: Bearer %s' "$ACCESS_TOKEN"`
  const [first, ...others] = passwords
  const name = first === undefined ? '' : ` --name ${others.length === 0 ? first.name : 'NAME'}`
  const command = tokenFile === undefined ? issue(`--for 1h${name}`) : `cat ${shellWord(tokenFile)}`
  return `{ printf 'Authorization: Bearer '; ${command}; }`
}
