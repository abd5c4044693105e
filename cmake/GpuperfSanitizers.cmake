# GPUPERF_SANITIZE=address,undefined or thread: everything of ours is built with it.
if(GPUPERF_SANITIZE)
  add_compile_options(-fsanitize=${GPUPERF_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all -g)
  add_link_options(-fsanitize=${GPUPERF_SANITIZE})
endif()
