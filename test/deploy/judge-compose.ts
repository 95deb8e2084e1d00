import { needs, run } from '../support/tools.ts'

/**
 * What docker-compose says against a file for it: '' if it takes it. It refuses unknown keys, values of another type, and a reference to a
 * service, network, volume or secret that the file does not define.
 */
export async function judgeCompose(text: string): Promise<string> {
  needs('docker-compose')
  // Debian 12's is older than `name` at the top of a file, so it gets the name as its option.
  const [, name = ''] = /^name: (\S+)\n/m.exec(text) ?? []
  const input = text.replace(/^name: .*\n/m, '')
  const { stderr } = await run('docker-compose', ['-p', name, '-f', '-', 'config', '--quiet'], { input })
  return stderr
}
