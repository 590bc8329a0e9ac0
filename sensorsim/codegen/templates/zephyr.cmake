if(CONFIG_SS_KERNELS)
  zephyr_library()
  zephyr_include_directories(../include)
  zephyr_library_include_directories(../src)
  zephyr_library_compile_definitions_ifdef(CONFIG_SS_NO_HW_DIV SS_NO_HW_DIV)
  zephyr_library_sources(
    ../{{ sources | join("\n    ../") }})
endif()
