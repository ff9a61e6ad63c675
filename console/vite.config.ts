// How the console is built: one page, hashed names (so that assets may be kept for ever), nothing inline (so
// that the policy of the page can be `self` and no more), no source maps.
import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'

export default defineConfig({
  root: import.meta.dirname,
  plugins: [react()],
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
    // The mark keeps its name: the reference of the API, which is not built here, shows it too.
    rolldownOptions: {
      output: {
        assetFileNames: ({ names }) =>
          names.includes('mark.svg') ? 'assets/mark.svg' : 'assets/[name]-[hash][extname]',
      },
    },
  },
})
