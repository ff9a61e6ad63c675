// How the console is built: one page, hashed names (so that assets may be kept for ever), nothing inline (so
// that the policy of the page can be `self` and no more), no source maps. Each page of the console is a file
// of its own, fetched when it is about to be opened.
import path from 'node:path'
import { contract } from '@hawser/contract'
import { defined } from '@hawser/contract/defined'
import type { Operation } from '@hawser/contract/operation'
import { roleMatrix } from '@hawser/contract/role-matrix'
import react from '@vitejs/plugin-react'
import { defineConfig, type Plugin } from 'vite'

/**
 * The browser calls operations and validates nothing, so it gets their methods and addresses without schemas,
 * descriptions and examples: 3 KB of what would be 100.
 */
function leanContract(): Plugin {
  const lean = Object.fromEntries(
    Object.entries(contract).map(([noun, verbs]) => [
      noun,
      Object.fromEntries(
        Object.entries(verbs as Record<string, Operation>).map(([verb, { method, path, list }]) => [
          verb,
          defined({ method, path, list: list || undefined }),
        ]),
      ),
    ]),
  )
  return {
    name: 'lean-contract',
    enforce: 'pre',
    load(id) {
      if (id.endsWith('/contract/src/index.ts')) return `export const contract = ${JSON.stringify(lean)}`
      // The table of roles is worked out here, from what the browser does not get.
      if (id.endsWith('/contract/src/role-matrix.ts'))
        return `export const roleMatrix = () => ${JSON.stringify(roleMatrix())}`
      return null
    },
  }
}

const ofSignIn =
  /preload-helper|node_modules\/(react|react-dom|scheduler)\/|contract\/src\/(client|failures|index)\.ts|console\/src\/(language\/(language|choice)|auth|early|early-page|error-text|link-params|public-api|server-info|theme|title)\.ts|components\/(form|plain-button|auth-layout)\.tsx/
const ofAllPages =
  /node_modules\/(@tanstack|react-aria|react-stately|@react-|@internationalized|lucide-react)|console\/src\/(language\/format|components\/(?!audit-(streams|table)|device-(map|table|selection|columns)|qr-code|service-)|(?!main)[a-z-]+\.tsx?$)/

const inFolder = (file: string): string => path.join(import.meta.dirname, file)

export default defineConfig({
  root: import.meta.dirname,
  plugins: [leanContract(), react()],
  build: {
    outDir: process.env['HAWSER_CONSOLE_OUT'] ?? 'dist',
    emptyOutDir: true,
    assetsDir: 'assets',
    // An inlined picture or a preload helper would be content that is not a file of ours.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    sourcemap: false,
    target: 'es2022',
    reportCompressedSize: false,
    rolldownOptions: {
      ...defined({
        input: process.env['HAWSER_CONSOLE_DESIGN'] ? ['index.html', 'design.html'].map(inFolder) : undefined,
      }),
      // Schemas that only the server needs, in a file with a list of words that the console needs, too.
      treeshake: { manualPureFunctions: ['Type', 'operation', 'member', 'deviceOr'] },
      output: {
        // Few files: far away, each costs a round trip. What the sign-in page needs, what all other pages
        // share, and a file for each page.
        codeSplitting: {
          groups: [
            { name: 'base', test: ofSignIn, priority: 2 },
            { name: 'app', test: ofAllPages, priority: 1 },
          ],
        },
        // The mark keeps its name: the reference of the API, which is not built here, shows it too.
        assetFileNames: ({ names }) =>
          names.includes('mark.svg') ? 'assets/mark.svg' : 'assets/[name]-[hash][extname]',
      },
    },
  },
})
