import { readFile } from 'node:fs/promises'

/** The version of an npm package that is installed here; undefined where it is not. */
export async function packageVersion(name: string): Promise<string | undefined> {
  const manifest = new URL(`../../node_modules/${name}/package.json`, import.meta.url)
  try {
    return (JSON.parse(await readFile(manifest, 'utf8')) as { version: string }).version // of npm, so it has one
  } catch {
    return undefined
  }
}
